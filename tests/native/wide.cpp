// The arithmetic of avx512.cpp, its vectors of 16 and tiles of 12 rows, for processors without AVX-512: the compiler
// makes each vector of two halves or of four quarters. Slow, but every index and every edge is the same.
#include "includes.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#endif

namespace td3::wide {
constexpr int WIDTH = 16, ROWS = 12, VECTORS = 2;
#include "vectors.inl"
#include "product.inl"
#include "adam.inl"
#include "update.inl"
}  // namespace td3::wide

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

namespace td3 {
extern const Kernels wide_kernels;  // check.cpp knows it; the library does not
const Kernels wide_kernels = {
    "wide",
    [] {
#if defined(__x86_64__)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
        return true;
#endif
    },
    wide::make, wide::multiply_add};
}  // namespace td3
