// The embedding's pass over some rows of the batch: step 4½, as far as the deltas; adam.inl does the rest.

// Through all layers of a network with weights (outputs, inputs). Its outputs go to the rows of `to`, from `column` on.
static void through(const Layers& network, Weights weights, Epilogue activation, Rows rows, Matrix& input,
                    std::vector<Matrix>& hidden, Matrix& to, int column = 0) {
    const float* x = input.at(rows.from);
    ptrdiff_t x_row = input.row;
    for (size_t i = 0; i < network.size(); ++i) {
        const bool last = i + 1 == network.size();
        Matrix& next = last ? to : hidden[i];
        float* y = next.at(rows.from) + (last ? column : 0);
        forward(network[i], weights, WeightOrder::outputs_first, last ? Epilogue::none : activation, rows.count(), x,
                x_row, y, next.row);
        x = y, x_row = next.row;
    }
}

// Divides the rows of `from` by their mean sizes, as the first columns of `to`.
static void normalise(Rows rows, int columns, Matrix& from, Matrix& to, Buffer& means) {
    normalise(rows.count(), columns, from.at(rows.from), from.row, to.at(rows.from), to.row, means.data() + rows.from);
}

static void normalise_backward(Rows rows, int columns, Matrix& outputs, Buffer& means, Matrix& gradient, Matrix& to) {
    normalise_backward(rows.count(), columns, outputs.at(rows.from), outputs.row, means.data() + rows.from,
                       gradient.at(rows.from), gradient.row, to.at(rows.from), to.row);
}

inline void CompiledTd7Engine::embedding_pass(Rows rows) {
    const int z = networks_.embedding, actions = networks_.actions;

    // 4½ · New: the embedding learns to predict. f(s') first, which gets no gradient …
    through(networks_.f, Weights::online, Epilogue::elu, rows, work_.next_input, work_.f_hidden, work_.raw);
    normalise(rows, z, work_.raw, work_.next_state, work_.f_means);

    // … then g(f(s), a), which moves towards it …
    through(networks_.f, Weights::online, Epilogue::elu, rows, work_.input, work_.f_hidden, work_.raw);
    normalise(rows, z, work_.raw, work_.pair, work_.f_means);
    for (int i = rows.from; i < rows.to; ++i) {
        std::memcpy(work_.pair.at(i) + z, work_.input.at(i) + networks_.observations, sizeof(float) * actions);
    }
    Matrix& deltas = work_.g_deltas.back();
    through(networks_.g, Weights::online, Epilogue::elu, rows, work_.pair, work_.g_hidden, deltas);

    // … with the mean squared distance as the loss; here its gradient in each number.
    const float scale = 2.0f / (static_cast<float>(batch_) * static_cast<float>(z));
    for (int i = rows.from; i < rows.to; ++i) {
        float* delta = deltas.at(i);
        const float* next = work_.next_state.at(i);
        Vector squares{};
        for (int j = 0; j < z; j += WIDTH) {  // beyond z both are zero
            const Vector error = load(delta + j) - load(next + j);
            squares += error * error;
            store(delta + j, error * broadcast(scale));
        }
        work_.prediction_loss.data()[i] = sum(squares) / static_cast<float>(z);
    }

    // Backpropagate through g, z^s, its norm, and f.
    backward(networks_.g, WeightOrder::outputs_first, rows, work_.g_hidden, work_.g_deltas, Epilogue::slope);
    backward_to_inputs(networks_.g[0], networks_.g[0].weight.direct, z, rows, work_.g_deltas.front(), work_.raw);
    normalise_backward(rows, z, work_.pair, work_.f_means, work_.raw, work_.f_deltas.back());
    backward(networks_.f, WeightOrder::outputs_first, rows, work_.f_hidden, work_.f_deltas, Epilogue::slope);
}

// z^s of these rows by the fixed f, as the first columns of `fixed_pair`.
inline void CompiledTd7Engine::embed(Weights weights, Rows rows, Matrix& input) {
    through(networks_.fixed_f, weights, Epilogue::elu, rows, input, work_.fixed_hidden, work_.raw);
    Buffer& unused = work_.critic_means[0];  // no gradient passes this norm
    normalise(rows, networks_.embedding, work_.raw, work_.fixed_pair, unused);
}

// z^sa of these rows by the fixed g, with the actions of `input`, and z^s: both critics' inputs but for φ.
inline void CompiledTd7Engine::embed_pair(Weights weights, Rows rows, Matrix& input) {
    const int z = networks_.embedding, width = networks_.critic_hidden[0];
    const size_t action_bytes = sizeof(float) * networks_.actions, state_bytes = sizeof(float) * z;
    for (int i = rows.from; i < rows.to; ++i) {
        std::memcpy(work_.fixed_pair.at(i) + z, input.at(i) + networks_.observations, action_bytes);
    }
    through(networks_.fixed_g, weights, Epilogue::elu, rows, work_.fixed_pair, work_.pair_hidden, work_.critic_input[0],
            width);
    for (int i = rows.from; i < rows.to; ++i) {
        float* first = work_.critic_input[0].at(i) + width;
        std::memcpy(first + z, work_.fixed_pair.at(i), state_bytes);
        std::memcpy(work_.critic_input[1].at(i) + width, first, 2 * state_bytes);
    }
}
