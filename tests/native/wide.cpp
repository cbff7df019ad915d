// The arithmetic of avx512.cpp, with its vectors of 16 floats and tiles of 12 rows, for processors without AVX-512: the
// compiler splits each vector. Slow, but every index and every edge case is the same.
#include "kernels.h"

#if defined(__x86_64__)
#define TARGET "avx2,fma"
#endif
#define PROCESSOR wide
#define FLOATS 16
#define TILE_ROWS 12
#define TILE_VECTORS 2
#include "arithmetic.inl"

namespace td3 {
extern const Kernels wide_kernels;  // used by check.cpp, not by the library
const Kernels wide_kernels = {
    "wide",
    [] {
#if defined(__x86_64__)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
        return true;
#endif
    },
    wide::make, wide::multiply_add, wide::make_td7};
}  // namespace td3
