// What the interface knows of the arithmetic, which is compiled once for each kind of processor.
#pragma once

#include <memory>

#include "interface.h"

namespace td3 {

// An engine whose arithmetic is compiled for one kind of processor.
struct Engine {
    virtual ~Engine() = default;
    virtual void bind(const Td3Tensor* actor, const Td3Tensor* critics) = 0;
    virtual void refresh() = 0;
    virtual void update(const Td3Settings& settings, const Td3Memory& memory, const int64_t* indices,
                        const float* noise, bool delayed, double* means, float* outputs) = 0;
    virtual void act(const float* observations, int64_t rows, float* actions) = 0;
};

struct Td7Engine {
    virtual ~Td7Engine() = default;
    virtual void bind(const Td3Tensor* embedding, const Td3Tensor* fixed, const Td3Tensor* actor,
                      const Td3Tensor* critics) = 0;
    virtual void refresh() = 0;
    virtual void update(const Td7Settings& settings, const Td3Memory& memory, const int64_t* indices,
                        const float* noise, bool delayed, bool copied, double* means, float* outputs) = 0;
    virtual void act(const float* observations, int64_t rows, float* actions) = 0;
};

struct Kernels {
    const char* name;
    bool (*supported)();
    std::unique_ptr<Engine> (*make)(const Td3Shape& shape, int64_t rows, int threads);
    double (*multiply_add)(int64_t times);  // runs multiply-adds only; returns the number of operations
    std::unique_ptr<Td7Engine> (*make_td7)(const Td7Shape& shape, int64_t rows, int threads);
};

extern const Kernels avx512_kernels, avx2_kernels, portable_kernels;

}  // namespace td3
