// The arithmetic for processors with AVX2 and FMA: vectors of 8, 16 registers.
#include "includes.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace td3::avx2 {
constexpr int WIDTH = 8, ROWS = 6, VECTORS = 2;
#include "vectors.inl"
#include "product.inl"
#include "adam.inl"
#include "update.inl"
}  // namespace td3::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace td3 {
const Kernels avx2_kernels = {
    "avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }, avx2::make,
    avx2::multiply_add};
}
#else
namespace td3 {
const Kernels avx2_kernels = {"avx2", [] { return false; }, nullptr, nullptr};
}
#endif
