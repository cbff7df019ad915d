// The arithmetic for one kind of processor. The file that includes it defines TARGET (the compiler's target, if not the
// default), PROCESSOR (its namespace), FLOATS (per vector), TILE_ROWS and TILE_VECTORS (the tile of a product).
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
#include "matrix.inl"
#include "parameter.inl"
#include "adam.inl"
#include "layers.inl"
#include "networks.inl"
#include "tasks.inl"
#include "workspace.inl"
#include "loading.inl"
#include "engine.inl"
#include "critic_pass.inl"
#include "actor_pass.inl"
#include "acting.inl"
#include "norm.inl"
#include "td7_networks.inl"
#include "td7_workspace.inl"
#include "td7_tasks.inl"
#include "td7_engine.inl"
#include "embedding_pass.inl"
#include "td7_critic_pass.inl"
#include "td7_actor_pass.inl"
#include "td7_acting.inl"
#include "peak.inl"
}  // namespace td3::PROCESSOR

#if defined(TARGET)
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
