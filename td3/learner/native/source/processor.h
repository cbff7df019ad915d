// Processor-specific instructions outside the arithmetic: the pause of a spin loop, and flushing denormals to zero.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace td3 {

inline void cpu_relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Treats denormals (below 1e-38) as zero while it lives, because they are many times slower; its destructor restores
// the caller's setting.
class FlushDenormals {
  public:
#if defined(__x86_64__)
    FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }  // flush to zero, denormals are zero
    ~FlushDenormals() { _mm_setcsr(before_); }

  private:
    unsigned before_;
#elif defined(__aarch64__)
    FlushDenormals() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" ::"r"(before_ | uint64_t{1} << 24));
    }
    ~FlushDenormals() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

  private:
    uint64_t before_;
#else
    FlushDenormals() {}
#endif
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;
};

}  // namespace td3
