// The actor's actions for observations outside an update.

inline void CompiledEngine::act(const float* observations, int64_t rows, float* actions) {
    const Layers& actor = networks_.actor;
    // Scratch memory per thread, because several may act at once; a few rows at a time keep it small.
    constexpr int chunk = 64;
    int widest = networks_.actions;
    for (int units : networks_.hidden) widest = std::max(widest, units);
    const int line = padded(widest);
    thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(2 * std::min<int64_t>(chunk, rows)) * line + STRIP);
    for (int64_t done = 0; done < rows; done += chunk) {
        const int count = static_cast<int>(std::min<int64_t>(chunk, rows - done));
        const float* x = observations + done * networks_.observations;
        ptrdiff_t x_row = networks_.observations;
        float* buffers[2] = {scratch.data(), scratch.data() + static_cast<ptrdiff_t>(count) * line};
        for (size_t i = 0; i < actor.size(); ++i) {
            const Epilogue activation = i + 1 < actor.size() ? Epilogue::relu : Epilogue::none;
            float* y = buffers[i % 2];
            forward(actor[i], Weights::online, WeightOrder::outputs_first, activation, count, x, x_row, y, line);
            x = y, x_row = line;
        }
        for (int r = 0; r < count; ++r) {
            apply_tanh(x + r * x_row, actions + (done + r) * networks_.actions, networks_.actions);
        }
    }
}
