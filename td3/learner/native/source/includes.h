// What the arithmetic needs of the standard library, included before any processor is chosen: nothing of the library
// may be compiled for a processor that is not there.
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
#include "team.h"

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TD3_SHUFFLES  // Clang, and GCC from 12 on
#endif
#endif
