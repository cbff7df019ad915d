// The arithmetic for one kind of processor, whose file says beforehand what it is: its TARGET for the compiler, a
// namespace PROCESSOR of its own, FLOATS in a vector, and tiles of TILE_ROWS
// rows of TILE_VECTORS vectors.
#include "includes.h"

#if defined(TARGET)
#define TD3_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define TD3_EXPANDED(...) TD3_PRAGMA(__VA_ARGS__)
#if defined(__clang__)
TD3_EXPANDED(clang attribute push(__attribute__((target(TARGET))), apply_to = function))
#else
#pragma GCC push_options
TD3_EXPANDED(GCC target(TARGET))
#endif
#endif

namespace td3::PROCESSOR {
constexpr int WIDTH = FLOATS, ROWS = TILE_ROWS, VECTORS = TILE_VECTORS;
#include "vectors.inl"
#include "product.inl"
#include "adam.inl"
#include "update.inl"
}  // namespace td3::PROCESSOR

#if defined(TARGET)
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
