// An array of floats: aligned to cache lines, filled with zeros, freed with its owner.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace td3 {

class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t count) {
        const std::size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
        void* memory = nullptr;
        if (posix_memalign(&memory, 64, bytes) != 0) throw std::bad_alloc();
        data_ = static_cast<float*>(std::memset(memory, 0, bytes));
    }
    Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    float* data() { return data_; }
    const float* data() const { return data_; }

  private:
    float* data_ = nullptr;
};

inline int round_up(int number, int multiple) { return (number + multiple - 1) / multiple * multiple; }

// Floats from one row of a matrix to the next: an odd number of cache lines, so that a column spreads over all sets of
// the cache.
inline int padded(int columns) { return (round_up(columns, 16) / 16 | 1) * 16; }

}  // namespace td3
