// The arithmetic for processors with AVX-512: vectors of 16, 32 registers.
#include "includes.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma")
#endif

namespace td3::avx512 {
constexpr int WIDTH = 16, ROWS = 12, VECTORS = 2;
#include "vectors.inl"
#include "product.inl"
#include "adam.inl"
#include "update.inl"
}  // namespace td3::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace td3 {
const Kernels avx512_kernels = {
    "avx512", [] { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"); }, avx512::make,
    avx512::multiply_add};
}
#else
namespace td3 {
const Kernels avx512_kernels = {"avx512", [] { return false; }, nullptr, nullptr};
}
#endif
