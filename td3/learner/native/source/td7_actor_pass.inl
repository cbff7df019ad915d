// The actor pass of TD7 over some rows of the batch: step 13, as far as the deltas; adam.inl does the rest.

inline void CompiledTd7Engine::actor_pass(Rows rows) {
    const int observations = networks_.observations, actions = networks_.actions, z = networks_.embedding;
    const int width = networks_.critic_hidden[0], critics = settings_.both_critics ? 2 : 1;

    // 13 · Delayed, as in TD3: the actor ascends, here the mean of both critics; through a, and z^sa of a.
    actor_forward(Weights::online, rows, work_.input);  // z^s is still there, of step 10
    for (int i = rows.from; i < rows.to; ++i) {
        apply_tanh(work_.pre_tanh.at(i), work_.input.at(i) + observations, actions);
    }
    embed_pair(Weights::online, rows, work_.input);

    // The gradient of minus their mean in each value, and back through each critic …
    Matrix &deltas = work_.actor_deltas.back(), &more = work_.action_deltas, &pair = work_.pair_deltas.back();
    for (int which = 0; which < critics; ++which) {
        critic_forward(which, Weights::online, rows, work_.input, work_.values[which].data());
        for (int i = rows.from; i < rows.to; ++i) {
            *work_.critic_deltas[which].back().at(i) = -1.0f / static_cast<float>(critics * batch_);
        }
        critic_backward(which, rows, width + z);

        // … to the action that its own linear layer takes, and to z^sa …
        const Layer& linear = networks_.critic_linear[which][0];
        Matrix& to = which == 0 ? deltas : more;
        backward_to_inputs(linear, linear.weight.transposed, actions, rows, work_.critic_linear_deltas[which], to);
        for (int i = rows.from; i < rows.to; ++i) {
            const float* gradient = work_.critic_input_deltas[which].at(i) + width;
            if (which == 0) {
                std::memcpy(pair.at(i), gradient, sizeof(float) * z);
            } else {
                for (int j = 0; j < z; ++j) pair.at(i)[j] += gradient[j];
                for (int j = 0; j < actions; ++j) deltas.at(i)[j] += more.at(i)[j];
            }
        }
    }

    // … from z^sa through the fixed g to the action that it takes …
    backward(networks_.fixed_g, WeightOrder::outputs_first, rows, work_.pair_hidden, work_.pair_deltas,
             Epilogue::slope);
    backward_to_inputs(networks_.fixed_g[0], networks_.action_columns, actions, rows, work_.pair_deltas.front(), more);

    // … then through the tanh, the actor, the norm of its φ, and its own linear layer.
    for (int i = rows.from; i < rows.to; ++i) {
        const float* action = work_.input.at(i) + observations;
        for (int j = 0; j < actions; ++j) {
            deltas.at(i)[j] = (deltas.at(i)[j] + more.at(i)[j]) * (1.0f - action[j] * action[j]);
        }
    }
    const Layers& actor = networks_.actor;
    backward(actor, WeightOrder::outputs_first, rows, work_.actor_hidden, work_.actor_deltas);
    const int own = networks_.actor_hidden[0];
    backward_to_inputs(actor[0], actor[0].weight.direct, own, rows, work_.actor_deltas.front(), work_.raw);
    normalise_backward(rows, own, work_.actor_input, work_.actor_means, work_.raw, work_.actor_linear_deltas);
}

// The actor's outputs for these rows, before the tanh, once `embed` has made z^s; all activations are kept.
inline void CompiledTd7Engine::actor_forward(Weights weights, Rows rows, Matrix& input) {
    const Layer& linear = networks_.actor_linear[0];
    Matrix& raw = work_.raw;
    forward(linear, weights, WeightOrder::outputs_first, Epilogue::none, rows.count(), input.at(rows.from), input.row,
            raw.at(rows.from), raw.row);
    normalise(rows, linear.outputs, raw, work_.actor_input, work_.actor_means);
    for (int i = rows.from; i < rows.to; ++i) {
        std::memcpy(work_.actor_input.at(i) + linear.outputs, work_.fixed_pair.at(i),
                    sizeof(float) * networks_.embedding);
    }
    through(networks_.actor, weights, Epilogue::relu, rows, work_.actor_input, work_.actor_hidden, work_.pre_tanh);
}
