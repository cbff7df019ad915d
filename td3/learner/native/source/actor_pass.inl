// The actor pass over some rows of the batch: step 13, as far as the deltas; adam.inl does the rest.

inline void CompiledEngine::actor_pass(Rows rows) {
    const int observations = networks_.observations, actions = networks_.actions;

    // 13 · The actor ascends the first critic's value of its own action; that action replaces the stored one.
    const float* output = actor_forward(Weights::online, rows, work_.input);
    for (int i = rows.from; i < rows.to; ++i) {
        apply_tanh(output + (i - rows.from) * work_.pre_tanh.row, work_.input.at(i) + observations, actions);
    }
    critic_forward(0, Weights::online, rows, work_.input, work_.values.data());

    // The gradient of −Q1's mean in each value, and back through the first critic …
    std::vector<Matrix>& critic_deltas = work_.critic_deltas[0];
    for (int i = rows.from; i < rows.to; ++i) *critic_deltas.back().at(i) = -1.0f / batch_;
    backward(networks_.critics[0], WeightOrder::inputs_first, rows, work_.critic_hidden[0], critic_deltas);

    // … to its action inputs: only these columns of its first weight are packed in `transposed` …
    const Layer& first = networks_.critics[0].front();
    Matrix& deltas = work_.actor_deltas.back();
    backward_to_inputs(first, first.weight.transposed, actions, rows, critic_deltas.front(), deltas);

    // … then through the tanh and the actor.
    for (int i = rows.from; i < rows.to; ++i) {
        const float* action = work_.input.at(i) + observations;
        float* delta = deltas.at(i);
        for (int j = 0; j < actions; ++j) delta[j] *= 1.0f - action[j] * action[j];
    }
    backward(networks_.actor, WeightOrder::outputs_first, rows, work_.actor_hidden, work_.actor_deltas);
}

// The actor's outputs for these rows, before the tanh; the online actor's activations are kept for the backward pass.
inline const float* CompiledEngine::actor_forward(Weights weights, Rows rows, Matrix& input) {
    const Layers& actor = networks_.actor;
    const float* x = input.at(rows.from);
    ptrdiff_t x_row = input.row;
    for (size_t i = 0; i < actor.size(); ++i) {
        const bool hidden = i + 1 < actor.size(), online = weights == Weights::online;
        Matrix& to = hidden ? (online ? work_.actor_hidden[i] : work_.target_hidden[i]) : work_.pre_tanh;
        float* y = to.at(rows.from);
        const Epilogue activation = hidden ? Epilogue::relu : Epilogue::none;
        forward(actor[i], weights, WeightOrder::outputs_first, activation, rows.count(), x, x_row, y, to.row);
        x = y, x_row = to.row;
    }
    return x;
}
