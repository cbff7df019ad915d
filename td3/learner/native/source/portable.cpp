// The arithmetic for any processor: vectors of 4, which every one of today has in some form.
#include "includes.h"

namespace td3::portable {
#if defined(__aarch64__)
constexpr int WIDTH = 4, ROWS = 6, VECTORS = 4;  // 32 registers
#else
constexpr int WIDTH = 4, ROWS = 2, VECTORS = 4;  // 16 registers
#endif
#include "vectors.inl"
#include "product.inl"
#include "adam.inl"
#include "update.inl"
}  // namespace td3::portable

namespace td3 {
const Kernels portable_kernels = {"portable", [] { return true; }, portable::make, portable::multiply_add};
}
