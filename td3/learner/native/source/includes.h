// The standard headers of the arithmetic, included before any target is chosen: no function of the standard library may
// be compiled for a processor that is not there.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "buffer.h"
#include "kernels.h"
#include "thread_pool.h"

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TD3_SHUFFLES  // Clang, and GCC 12 or later
#endif
#endif
