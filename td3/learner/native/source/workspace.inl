// The memory of an update: inputs, activations, deltas, and what it returns.

// The arrays an update returns, one after another in one block of memory.
struct Outputs {
    float *next_action = nullptr, *next_q1 = nullptr, *next_q2 = nullptr, *target = nullptr, *q1 = nullptr,
          *q2 = nullptr;
    Outputs() = default;
    Outputs(float* memory, ptrdiff_t rows, ptrdiff_t actions) : next_action(memory) {
        memory += rows * actions;
        for (float** part : {&next_q1, &next_q2, &target, &q1, &q2}) *part = std::exchange(memory, memory + rows);
    }
};

struct Workspace {
    Matrix input, next_input;           // (s, a) and (s', a') side by side
    std::vector<Matrix> target_hidden;  // hidden activations of a target network, not kept
    std::vector<Matrix> critic_hidden[2], critic_deltas[2], actor_hidden, actor_deltas;
    Matrix pre_tanh;              // the actor's outputs before the tanh
    Buffer values;                // the first critic's values of the actor's own actions
    Buffer unused_outputs;        // takes the outputs where the caller wants none
    std::vector<Buffer> scratch;  // of each thread, for a gradient

    Workspace() = default;
    Workspace(const Networks& networks, int batch, int threads) {
        const int actions = networks.actions, inputs = networks.observations + actions;
        input = Matrix(batch, inputs), next_input = Matrix(batch, inputs);
        pre_tanh = Matrix(batch, actions);
        values = Buffer(batch);
        unused_outputs = Buffer(static_cast<size_t>(batch) * (actions + 5));
        int widest = inputs;
        for (int units : networks.hidden) {
            widest = std::max(widest, units);
            target_hidden.emplace_back(batch, units);
            actor_hidden.emplace_back(batch, units);
            actor_deltas.emplace_back(batch, units);
            for (int which = 0; which < 2; ++which) {
                critic_hidden[which].emplace_back(batch, units);
                critic_deltas[which].emplace_back(batch, units);
            }
        }
        actor_deltas.emplace_back(batch, actions);
        for (auto& deltas : critic_deltas) deltas.emplace_back(batch, 1);
        for (int thread = 0; thread < threads; ++thread) {
            scratch.emplace_back(static_cast<size_t>(PARAMETER_BLOCK) * padded(std::max(widest, actions)) + STRIP);
        }
    }
};
