// The memory of an update of TD7: inputs, activations, deltas, and what it returns.

// The arrays an update returns, one after another in one block of memory.
struct Td7Outputs {
    float *next_action = nullptr, *next_q1 = nullptr, *next_q2 = nullptr, *next_q = nullptr, *target = nullptr,
          *q1 = nullptr, *q2 = nullptr;
    Td7Outputs() = default;
    Td7Outputs(float* memory, ptrdiff_t rows, ptrdiff_t actions) : next_action(memory) {
        memory += rows * actions;
        for (float** part : {&next_q1, &next_q2, &next_q, &target, &q1, &q2}) {
            *part = std::exchange(memory, memory + rows);
        }
    }
};

struct Td7Workspace {
    Matrix input, next_input;  // (s, a) and (s', a') side by side
    Matrix raw;                // a linear layer's outputs before their norm, or the gradient in a norm's outputs

    // Of the embedding that learns.
    Matrix pair, next_state;  // (z^s, a), and z^s of s'
    std::vector<Matrix> f_hidden, f_deltas, g_hidden, g_deltas;
    Buffer f_means, prediction_loss;  // of each row

    // Of the fixed one.
    Matrix fixed_pair;                           // (z^s, a)
    std::vector<Matrix> fixed_hidden;            // of f, not kept
    std::vector<Matrix> pair_hidden, pair_deltas;  // of g

    Matrix actor_input;  // (φ, z^s)
    std::vector<Matrix> actor_hidden, actor_deltas;
    Matrix actor_linear_deltas, pre_tanh;
    Buffer actor_means;

    Matrix critic_input[2];  // (φ, z^sa, z^s)
    std::vector<Matrix> critic_hidden[2], critic_deltas[2];
    Matrix critic_input_deltas[2], critic_linear_deltas[2];  // of (φ, z^sa); of W (s, a)
    Matrix action_deltas;                                    // one way to the action
    Buffer critic_means[2], values[2];                       // the critics' values of the actor's own actions

    Buffer unused_outputs;        // takes the outputs where the caller wants none
    std::vector<Buffer> scratch;  // of each thread, for a gradient

    Td7Workspace() = default;
    Td7Workspace(const Td7Networks& networks, int batch, int threads) {
        const int observations = networks.observations, actions = networks.actions, z = networks.embedding;
        const int actor_width = networks.actor_hidden[0], critic_width = networks.critic_hidden[0];
        input = Matrix(batch, observations + actions), next_input = Matrix(batch, observations + actions);
        raw = Matrix(batch, std::max({actor_width, critic_width, z}));
        pair = Matrix(batch, z + actions), fixed_pair = Matrix(batch, z + actions), next_state = Matrix(batch, z);
        for (std::vector<Matrix>* part :
             {&f_hidden, &f_deltas, &g_hidden, &g_deltas, &fixed_hidden, &pair_hidden, &pair_deltas}) {
            for (int units : networks.embedding_hidden) part->emplace_back(batch, units);
        }
        for (std::vector<Matrix>* part : {&f_deltas, &g_deltas, &pair_deltas}) part->emplace_back(batch, z);
        actor_input = Matrix(batch, actor_width + z);
        for (int units : networks.actor_hidden) {
            actor_hidden.emplace_back(batch, units), actor_deltas.emplace_back(batch, units);
        }
        actor_deltas.emplace_back(batch, actions);
        actor_linear_deltas = Matrix(batch, actor_width), pre_tanh = Matrix(batch, actions);
        action_deltas = Matrix(batch, actions);
        for (int which = 0; which < 2; ++which) {
            // A product writes whole panels: z^sa may run into z^s, which is written after it, not into the next row.
            critic_input[which] = Matrix(batch, critic_width + 2 * z + PANEL);
            for (int units : networks.critic_hidden) {
                critic_hidden[which].emplace_back(batch, units), critic_deltas[which].emplace_back(batch, units);
            }
            critic_deltas[which].emplace_back(batch, 1);
            critic_input_deltas[which] = Matrix(batch, critic_width + z);
            critic_linear_deltas[which] = Matrix(batch, critic_width);
            critic_means[which] = Buffer(batch), values[which] = Buffer(batch);
        }
        f_means = Buffer(batch), actor_means = Buffer(batch), prediction_loss = Buffer(batch);
        unused_outputs = Buffer(static_cast<size_t>(batch) * (actions + 6));
        int widest = actions;
        for (const Layers* network : {&networks.f, &networks.g, &networks.actor_linear, &networks.actor,
                                      &networks.critic_linear[0], &networks.critics[0]}) {
            for (const Layer& layer : *network) widest = std::max({widest, layer.weight.columns, layer.outputs});
        }
        for (int thread = 0; thread < threads; ++thread) {
            scratch.emplace_back(static_cast<size_t>(PARAMETER_BLOCK) * padded(widest) + STRIP);
        }
    }
};
