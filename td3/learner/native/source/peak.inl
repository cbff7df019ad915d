// The peak of the processor: multiply-adds alone, as `td3 bench` compares with.

static double multiply_add(int64_t times) {
    constexpr int chains = 12;
    Vector sums[chains];
    Vector x = broadcast(1.0f), y = broadcast(1e-9f);
    for (int i = 0; i < chains; ++i) sums[i] = broadcast(static_cast<float>(i));
    for (int64_t t = 0; t < times; ++t) {
        asm volatile("" : "+m"(x), "+m"(y) : :);
        for (int repeat = 0; repeat < 64; ++repeat)
            for (int i = 0; i < chains; ++i) sums[i] = sums[i] * x + y;
    }
    for (int i = 0; i < chains; ++i) asm volatile("" : : "m"(sums[i]) :);
    return static_cast<double>(times) * 64 * chains * WIDTH * 2;
}
