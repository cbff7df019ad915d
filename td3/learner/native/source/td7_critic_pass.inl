// The critic pass of TD7 over some rows of the batch: steps 5 to 12, as far as the deltas; adam.inl does the rest.

inline void CompiledTd7Engine::critic_pass(Rows rows) {
    const int actions = networks_.actions;

    // 5 · The actor target selects the next action a' in s', as in TD3.
    embed(Weights::target, rows, work_.next_input);  // z^s of s' by f_{t−1}
    actor_forward(Weights::target, rows, work_.next_input);

    // 6 · Smoothing, as in TD3.
    const auto scale = static_cast<float>(settings_.target_noise), clip = static_cast<float>(settings_.noise_clip);
    for (int i = rows.from; i < rows.to; ++i) {
        float* action = work_.next_input.at(i) + networks_.observations;
        apply_tanh(work_.pre_tanh.at(i), action, actions);
        const float* noise = noise_ + static_cast<ptrdiff_t>(i) * actions;
        float* next_action = outputs_.next_action + static_cast<ptrdiff_t>(i) * actions;
        for (int j = 0; j < actions; ++j) {
            const float clipped_noise = within(noise[j] * scale, clip);
            next_action[j] = action[j] = within(action[j] + clipped_noise, 1.0f);
        }
    }

    // 7 · Both critic targets evaluate the same (s', a'), as in TD3; their z of (s', a') is of g_{t−1}.
    embed_pair(Weights::target, rows, work_.next_input);
    critic_forward(0, Weights::target, rows, work_.next_input, outputs_.next_q1);
    critic_forward(1, Weights::target, rows, work_.next_input, outputs_.next_q2);

    const auto gamma = static_cast<float>(settings_.gamma);
    const auto low = static_cast<float>(settings_.low), high = static_cast<float>(settings_.high);
    for (int i = rows.from; i < rows.to; ++i) {
        // 8 · The smaller value counts, as in TD3; then it is clipped to the range of targets up to the last copy.
        const float q1 = outputs_.next_q1[i], q2 = outputs_.next_q2[i];
        float next_q = q2 < q1 || q2 != q2 ? q2 : q1;
        if (settings_.clip_targets && next_q == next_q) {  // NaN stays NaN
            next_q = !(next_q >= low) ? low : !(next_q <= high) ? high : next_q;
        }
        outputs_.next_q[i] = next_q;

        // 9 · The target, as in TD3.
        const int64_t row = indices_[i];
        const float discount = memory_.discount ? memory_.discount[row] : gamma;
        outputs_.target[i] = memory_.reward[row] + discount * (memory_.terminated[row] ? 0.0f : 1.0f) * next_q;
    }

    // 10 · Both critics evaluate the stored (s, a), as in TD3, with z of f_t and g_t, which stand still.
    embed(Weights::online, rows, work_.input);
    embed_pair(Weights::online, rows, work_.input);
    float* q[2] = {outputs_.q1, outputs_.q2};
    const auto floor = static_cast<float>(settings_.loss_floor);
    for (int which = 0; which < 2; ++which) {
        critic_forward(which, Weights::online, rows, work_.input, q[which]);

        // 11 · The loss, as in TD3; with `sampling lap` a Huber loss. Here its gradient in each value.
        for (int i = rows.from; i < rows.to; ++i) {
            const float error = q[which][i] - outputs_.target[i];
            *work_.critic_deltas[which].back().at(i) =
                floor > 0 ? within(error, floor) * (1.0f / batch_) : error * (2.0f / batch_);
        }

        // 12 · Backpropagate, as in TD3; no gradient reaches the embedding.
        critic_backward(which, rows, networks_.critic_hidden[0]);
    }
}

// A critic's values for these rows, once `embed_pair` has made its other inputs; all activations are kept.
inline void CompiledTd7Engine::critic_forward(int which, Weights weights, Rows rows, Matrix& input, float* values) {
    const Layer& linear = networks_.critic_linear[which][0];
    Matrix &raw = work_.raw, &own = work_.critic_input[which];
    forward(linear, weights, WeightOrder::inputs_first, Epilogue::none, rows.count(), input.at(rows.from), input.row,
            raw.at(rows.from), raw.row);
    normalise(rows, linear.outputs, raw, own, work_.critic_means[which]);

    const Layers& critic = networks_.critics[which];
    const float* x = own.at(rows.from);
    ptrdiff_t x_row = own.row;
    for (size_t i = 0; i + 1 < critic.size(); ++i) {
        Matrix& to = work_.critic_hidden[which][i];
        float* y = to.at(rows.from);
        forward(critic[i], weights, WeightOrder::inputs_first, Epilogue::elu, rows.count(), x, x_row, y, to.row);
        x = y, x_row = to.row;
    }
    const Layer& last = critic.back();
    const bool online = weights == Weights::online;
    const float* weight = (online ? last.weight.direct : last.weight.target_direct).memory.data();
    const float bias = *(online ? last.bias.direct : last.bias.target_direct).memory.data();
    multiply_by_one_column(rows.count(), last.inputs, x, x_row, weight, bias, values + rows.from);
}

// From a critic's value to its own linear layer: the deltas of all layers, and the first `columns` of (φ, z^sa).
inline void CompiledTd7Engine::critic_backward(int which, Rows rows, int columns) {
    const Layers& critic = networks_.critics[which];
    std::vector<Matrix>& deltas = work_.critic_deltas[which];
    Matrix& inputs = work_.critic_input_deltas[which];
    backward(critic, WeightOrder::inputs_first, rows, work_.critic_hidden[which], deltas, Epilogue::slope);
    backward_to_inputs(critic[0], critic[0].weight.transposed, columns, rows, deltas.front(), inputs);
    normalise_backward(rows, networks_.critic_hidden[0], work_.critic_input[which], work_.critic_means[which], inputs,
                       work_.critic_linear_deltas[which]);
}
