// The arithmetic for processors with AVX2 and FMA: vectors of 8 floats, 16 registers.
#include "kernels.h"

#if defined(__x86_64__)
#define TARGET "avx2,fma"
#define PROCESSOR avx2
#define FLOATS 8
#define TILE_ROWS 6
#define TILE_VECTORS 2
#include "arithmetic.inl"

namespace td3 {
const Kernels avx2_kernels = {
    "avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }, avx2::make,
    avx2::multiply_add, avx2::make_td7};
}
#else
namespace td3 {
const Kernels avx2_kernels = {"avx2", [] { return false; }, nullptr, nullptr, nullptr};
}
#endif
