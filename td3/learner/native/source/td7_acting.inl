// The actions of TD7's actor, through f_t, for observations outside an update.

inline void CompiledTd7Engine::act(const float* observations, int64_t rows, float* actions) {
    const Layer& linear = networks_.actor_linear[0];
    const int width = linear.outputs, z = networks_.embedding;
    // Scratch memory per thread, because several may act at once; a few rows at a time keep it small.
    constexpr int chunk = 64;
    int widest = std::max(width + z, networks_.actions);
    for (const Layers* network : {&networks_.fixed_f, &networks_.actor}) {
        for (const Layer& layer : *network) widest = std::max(widest, layer.outputs);
    }
    const int line = padded(widest);
    const int64_t most = std::min<int64_t>(chunk, rows);
    thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(3 * most) * line + STRIP + chunk);
    float *input = scratch.data(), *buffers[2] = {input + most * line, input + 2 * most * line};
    float* means = input + 3 * most * line + STRIP;
    const auto pass = [&](const Layers& network, Epilogue activation, int count, const float* x, ptrdiff_t x_row) {
        for (size_t i = 0; i < network.size(); ++i) {
            const bool last = i + 1 == network.size();
            forward(network[i], Weights::online, WeightOrder::outputs_first, last ? Epilogue::none : activation, count,
                    x, x_row, buffers[i % 2], line);
            x = buffers[i % 2], x_row = line;
        }
        return x;
    };
    for (int64_t done = 0; done < rows; done += chunk) {
        const int count = static_cast<int>(std::min<int64_t>(chunk, rows - done));
        const float* seen = observations + done * networks_.observations;
        const float* state = pass(networks_.fixed_f, Epilogue::elu, count, seen, networks_.observations);
        normalise(count, z, state, line, input + width, line, means);
        const float* own = pass(networks_.actor_linear, Epilogue::none, count, seen, networks_.observations);
        normalise(count, width, own, line, input, line, means);
        const float* outputs = pass(networks_.actor, Epilogue::relu, count, input, line);
        for (int r = 0; r < count; ++r) {
            apply_tanh(outputs + static_cast<ptrdiff_t>(r) * line, actions + (done + r) * networks_.actions,
                       networks_.actions);
        }
    }
}
