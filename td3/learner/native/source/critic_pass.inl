// The critic pass over some rows of the batch: steps 5 to 12, as far as the deltas; adam.inl does the rest of step 12.

inline void CompiledEngine::critic_pass(Rows rows) {
    const int actions = networks_.actions;
    load_batch(memory_, indices_, rows, networks_.observations, actions, work_.input, work_.next_input);

    // 5 · The actor target selects the next action a' in s'.
    const float* output = actor_forward(Weights::target, rows, work_.next_input);

    // 6 · Smoothing: clipped noise on every row and dimension of a', then back into bounds.
    const auto scale = static_cast<float>(settings_.target_noise), clip = static_cast<float>(settings_.noise_clip);
    for (int i = rows.from; i < rows.to; ++i) {
        float* action = work_.next_input.at(i) + networks_.observations;
        apply_tanh(output + (i - rows.from) * work_.pre_tanh.row, action, actions);
        const float* noise = noise_ + static_cast<ptrdiff_t>(i) * actions;
        float* next_action = outputs_.next_action + static_cast<ptrdiff_t>(i) * actions;
        for (int j = 0; j < actions; ++j) {
            const float clipped_noise = std::min(std::max(noise[j] * scale, -clip), clip);
            next_action[j] = action[j] = within(action[j] + clipped_noise, 1.0f);
        }
    }

    // 7 · Both critic targets evaluate the same (s', a').
    critic_forward(0, Weights::target, rows, work_.next_input, outputs_.next_q1);
    critic_forward(1, Weights::target, rows, work_.next_input, outputs_.next_q2);

    const auto gamma = static_cast<float>(settings_.gamma);
    for (int i = rows.from; i < rows.to; ++i) {
        // 8 · The smaller value counts, row by row.
        const float q1 = outputs_.next_q1[i], q2 = outputs_.next_q2[i];
        const float next_q = q2 < q1 || q2 != q2 ? q2 : q1;

        // 9 · The target: reward, plus the discounted future unless the episode terminated there.
        const int64_t row = indices_[i];
        const float discount = memory_.discount ? memory_.discount[row] : gamma;
        const float future = discount * (memory_.terminated[row] ? 0.0f : 1.0f) * next_q;
        outputs_.target[i] = memory_.reward[row] + future;
    }

    float* q[2] = {outputs_.q1, outputs_.q2};
    const auto floor = static_cast<float>(settings_.loss_floor);
    for (int which = 0; which < 2; ++which) {
        // 10 · Both critics evaluate the stored (s, a).
        critic_forward(which, Weights::online, rows, work_.input, q[which]);

        // 11 · The loss: both critics' mean squared distance from the target; here its gradient in each value. That of
        // prioritised sampling grows no further above the floor.
        std::vector<Matrix>& deltas = work_.critic_deltas[which];
        for (int i = rows.from; i < rows.to; ++i) {
            const float error = q[which][i] - outputs_.target[i];
            *deltas.back().at(i) = floor > 0 ? within(error, floor) * (1.0f / batch_) : error * (2.0f / batch_);
        }

        // 12 · Backpropagate; here to every layer's deltas.
        backward(networks_.critics[which], WeightOrder::inputs_first, rows, work_.critic_hidden[which], deltas);
    }
}

// A critic's values for these rows; the online critic's activations are kept for the backward pass.
inline void CompiledEngine::critic_forward(int which, Weights weights, Rows rows, Matrix& input, float* values) {
    const Layers& critic = networks_.critics[which];
    const bool online = weights == Weights::online;
    const float* x = input.at(rows.from);
    ptrdiff_t x_row = input.row;
    for (size_t i = 0; i + 1 < critic.size(); ++i) {
        Matrix& to = online ? work_.critic_hidden[which][i] : work_.target_hidden[i];
        float* y = to.at(rows.from);
        forward(critic[i], weights, WeightOrder::inputs_first, Epilogue::relu, rows.count(), x, x_row, y, to.row);
        x = y, x_row = to.row;
    }
    const Layer& last = critic.back();
    const float* weight = (online ? last.weight.direct : last.weight.target_direct).memory.data();
    const float bias = *(online ? last.bias.direct : last.bias.target_direct).memory.data();
    multiply_by_one_column(rows.count(), last.inputs, x, x_row, weight, bias, values + rows.from);
}
