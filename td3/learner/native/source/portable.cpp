// The arithmetic for any processor: vectors of 4 floats, which all current ones support.
#include "kernels.h"

#define PROCESSOR portable
#define FLOATS 4
#if defined(__aarch64__)
#define TILE_ROWS 6  // 32 registers
#else
#define TILE_ROWS 2  // 16 registers
#endif
#define TILE_VECTORS 4
#include "arithmetic.inl"

namespace td3 {
const Kernels portable_kernels = {"portable", [] { return true; }, portable::make, portable::multiply_add,
                                  portable::make_td7};
}
