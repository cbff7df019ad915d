// The C interface: chooses the kernels and lets no exception escape.
#include "interface.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "kernels.h"
#include "processor.h"
#include "tested.h"

struct Td3Engine {
    std::unique_ptr<td3::Engine> engine;
};

struct Td7Handle {
    std::unique_ptr<td3::Td7Engine> engine;
};

namespace {

const td3::Kernels* const kKernels[] = {&td3::avx512_kernels, &td3::avx2_kernels, &td3::portable_kernels};

const td3::Kernels* find(const char* name) {
    for (const td3::Kernels* kernels : kKernels) {
        if (kernels->supported() && std::strcmp(kernels->name, name) == 0) return kernels;
    }
    return nullptr;
}

}  // namespace

extern "C" {

int64_t td3_interface(void) { return TD3_INTERFACE; }

const char* td3_tested(void) { return TD3_TESTED; }

const char* td3_kernels(int64_t index) {
    for (const td3::Kernels* kernels : kKernels) {
        if (kernels->supported() && index-- == 0) return kernels->name;
    }
    return nullptr;
}

Td3Engine* td3_new(const char* name, const Td3Shape* shape, int64_t rows, int64_t threads) {
    const td3::Kernels* kernels = find(name);
    if (!kernels) return nullptr;
    try {
        return new Td3Engine{kernels->make(*shape, rows, static_cast<int>(threads))};
    } catch (const std::exception&) {  // it does not fit into memory
        return nullptr;
    }
}

void td3_free(Td3Engine* handle) { delete handle; }

void td3_bind(Td3Engine* handle, const Td3Tensor* actor, const Td3Tensor* critics) {
    handle->engine->bind(actor, critics);
}

void td3_refresh(Td3Engine* handle) { handle->engine->refresh(); }

void td3_update(Td3Engine* handle, const Td3Settings* settings, const Td3Memory* memory, const int64_t* indices,
                const float* noise, int64_t delayed, double* means, float* outputs) {
    const td3::FlushDenormals flush;
    handle->engine->update(*settings, *memory, indices, noise, delayed != 0, means, outputs);
}

int64_t td3_act(Td3Engine* handle, const float* observations, int64_t rows, float* actions) {
    const td3::FlushDenormals flush;
    try {
        handle->engine->act(observations, rows, actions);
        return 1;
    } catch (const std::exception&) {  // no memory for the activations
        return 0;
    }
}

Td7Handle* td7_new(const char* name, const Td7Shape* shape, int64_t rows, int64_t threads) {
    const td3::Kernels* kernels = find(name);
    if (!kernels) return nullptr;
    try {
        return new Td7Handle{kernels->make_td7(*shape, rows, static_cast<int>(threads))};
    } catch (const std::exception&) {  // it does not fit into memory
        return nullptr;
    }
}

void td7_free(Td7Handle* handle) { delete handle; }

void td7_bind(Td7Handle* handle, const Td3Tensor* embedding, const Td3Tensor* fixed, const Td3Tensor* actor,
              const Td3Tensor* critics) {
    handle->engine->bind(embedding, fixed, actor, critics);
    handle->engine->refresh();
}

void td7_update(Td7Handle* handle, const Td7Settings* settings, const Td3Memory* memory, const int64_t* indices,
                const float* noise, int64_t delayed, int64_t copied, double* means, float* outputs) {
    const td3::FlushDenormals flush;
    handle->engine->update(*settings, *memory, indices, noise, delayed != 0, copied != 0, means, outputs);
}

int64_t td7_act(Td7Handle* handle, const float* observations, int64_t rows, float* actions) {
    const td3::FlushDenormals flush;
    try {
        handle->engine->act(observations, rows, actions);
        return 1;
    } catch (const std::exception&) {  // no memory for the activations
        return 0;
    }
}

double td3_peak(const char* name, int64_t threads, double seconds) {
    const td3::Kernels* kernels = find(name);
    if (!kernels) return 0;
    using Clock = std::chrono::steady_clock;
    std::atomic<int64_t> ready{0};
    std::vector<double> rates(static_cast<size_t>(threads));
    const auto measure = [&](size_t thread) {
        ready.fetch_add(1);
        while (ready.load() < threads) td3::cpu_relax();
        const auto began = Clock::now();
        double operations = 0, passed = 0;
        do {
            operations += kernels->multiply_add(1000);
            passed = std::chrono::duration<double>(Clock::now() - began).count();
        } while (passed < seconds);
        rates[thread] = operations / passed;
    };
    std::vector<std::thread> others;
    try {
        for (size_t thread = 1; thread < rates.size(); ++thread) others.emplace_back(measure, thread);
    } catch (const std::exception&) {  // the system allows no more threads: measure those that started
        ready.fetch_add(threads - 1 - static_cast<int64_t>(others.size()));
    }
    measure(0);
    for (auto& other : others) other.join();
    double total = 0;
    for (double rate : rates) total += rate;
    return total / 1e9;
}

}  // extern "C"
