// The arithmetic for processors with AVX-512: vectors of 16 floats, 32 registers.
#include "kernels.h"

#if defined(__x86_64__)
#define TARGET "avx512f,avx512dq,avx512vl,avx512bw,fma"
#define PROCESSOR avx512
#define FLOATS 16
#define TILE_ROWS 12
#define TILE_VECTORS 2
#include "arithmetic.inl"

namespace td3 {
const Kernels avx512_kernels = {
    "avx512", [] { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"); }, avx512::make,
    avx512::multiply_add, avx512::make_td7};
}
#else
namespace td3 {
const Kernels avx512_kernels = {"avx512", [] { return false; }, nullptr, nullptr, nullptr};
}
#endif
