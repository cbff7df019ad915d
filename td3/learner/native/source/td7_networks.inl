// The networks of TD7: embedding, actor and critics. Each has a part that reads what it is given, and one that reads
// that beside the embeddings.

struct Td7Networks {
    const int observations, actions, embedding;  // sizes of s, a, and of z^s and z^sa
    std::vector<int> embedding_hidden, actor_hidden, critic_hidden;
    Layers f, g;              // the embedding that learns: f_{t+1}, g_{t+1}
    Layers fixed_f, fixed_g;  // f_t, g_t, which actor and critics take; their targets are f_{t−1}, g_{t−1}
    Layers actor_linear, actor;
    Layers critic_linear[2], critics[2];
    Packed action_columns;  // of the first weight of g_t: the gradient's way from z^sa to the action

    // With `acting` alone there are no critics, no targets and no copies for the backward pass.
    Td7Networks(const Td7Shape& shape, bool acting)
        : observations(static_cast<int>(shape.observations)), actions(static_cast<int>(shape.actions)),
          embedding(static_cast<int>(shape.embedding)),
          embedding_hidden(shape.embedding_hidden, shape.embedding_hidden + shape.embedding_layers - 1),
          actor_hidden(shape.actor_hidden, shape.actor_hidden + shape.actor_layers - 1),
          critic_hidden(shape.critic_hidden, shape.critic_hidden + shape.critic_layers - 1) {
        const int actor_width = actor_hidden[0], never = 1'000'000;
        add(fixed_f, observations, embedding_hidden, embedding, !acting, never);
        add(actor_linear, observations, {}, actor_width, !acting, never);
        add(actor, actor_width + embedding, actor_hidden, actions, !acting, acting ? never : 0);
        if (acting) return;
        const int critic_width = critic_hidden[0];
        add(fixed_g, embedding + actions, embedding_hidden, embedding, true, 1);
        add(f, observations, embedding_hidden, embedding, false, 1);
        add(g, embedding + actions, embedding_hidden, embedding, false, 0);
        action_columns.memory = Buffer(static_cast<size_t>(fixed_g[0].outputs) * round_up(actions, STRIP));
        for (int which = 0; which < 2; ++which) {
            add_critic_layer(critic_linear[which], observations + actions, critic_width, false, observations);
            int inputs = critic_width + 2 * embedding;
            for (int units : critic_hidden) {
                add_critic_layer(critics[which], inputs, units, false, 0);
                inputs = units;
            }
            add_critic_layer(critics[which], inputs, 1, true, 0);
        }
    }

    // The tensors of each are in PyTorch's order: f then g, the linear layer then the others, weight then bias.
    void bind(const Td3Tensor* embeddings, const Td3Tensor* fixed, const Td3Tensor* actors, const Td3Tensor* twins) {
        for (Layers* network : {&f, &g}) embeddings = bind(*network, embeddings);
        for (Layers* network : {&fixed_f, &fixed_g}) fixed = bind(*network, fixed);
        for (Layers* network : {&actor_linear, &actor}) actors = bind(*network, actors);
        for (int which = 0; which < 2; ++which) bind(critics[which], bind(critic_linear[which], twins, which), which);
    }

    void pack_all() {
        for (Layers* network : {&f, &g, &fixed_f, &fixed_g, &actor_linear, &actor, &critic_linear[0],
                                &critic_linear[1], &critics[0], &critics[1]}) {
            for (Layer& layer : *network) {
                for (Parameter* p : {&layer.weight, &layer.bias}) pack(*p, 0, p->rows, p->tensor.target != nullptr);
            }
        }
        pack_action_columns();
    }

    void pack_action_columns() {
        if (fixed_g.empty()) return;  // it can only act
        const Parameter& weight = fixed_g[0].weight;
        for (int column = 0; column < actions; ++column) {
            float* panel = action_columns.memory.data() + static_cast<ptrdiff_t>(column / PANEL) * weight.rows * PANEL;
            for (int row = 0; row < weight.rows; ++row) {
                const ptrdiff_t at = static_cast<ptrdiff_t>(row) * weight.columns + embedding + column;
                panel[row * PANEL + column % PANEL] = weight.tensor.value[at];
            }
        }
    }

  private:
    // Layers with PyTorch's weights (outputs, inputs). From layer `backward` on they pass gradients to their inputs.
    static void add(Layers& network, int inputs, const std::vector<int>& hidden, int outputs, bool targets,
                    int backward) {
        for (size_t i = 0; i <= hidden.size(); ++i) {
            const int units = i < hidden.size() ? hidden[i] : outputs;
            Layer& layer = Networks::add_layer(network, inputs, units);
            Parameter& weight = layer.weight;
            weight.rows = units, weight.columns = inputs;
            weight.transposed = Networks::transposed_of(weight);
            if (static_cast<int>(i) >= backward) weight.direct = Networks::direct_of(weight);
            if (targets) {
                weight.target_transposed = Networks::transposed_of(weight);
                layer.bias.target_direct = Networks::direct_of(layer.bias);
            }
            inputs = units;
        }
    }

    // A layer with the weight (inputs, outputs), which passes gradients to its inputs from number `first` on.
    static void add_critic_layer(Layers& network, int inputs, int outputs, bool last, int first) {
        Layer& layer = Networks::add_layer(network, inputs, outputs);
        Parameter& weight = layer.weight;
        weight.rows = last ? 1 : inputs, weight.columns = last ? inputs : outputs;  // (inputs, 1) is (1, inputs)
        weight.direct = Networks::direct_of(weight), weight.target_direct = Networks::direct_of(weight);
        layer.bias.target_direct = Networks::direct_of(layer.bias);
        if (!last) weight.transposed = Networks::transposed_of(weight, first);
    }

    static const Td3Tensor* bind(Layers& network, const Td3Tensor* tensor, int which = 0) {
        for (Layer& layer : network) {
            const ptrdiff_t weights = static_cast<ptrdiff_t>(layer.inputs) * layer.outputs;
            layer.weight.tensor = Networks::offset_by(*tensor++, which * weights);
            layer.bias.tensor = Networks::offset_by(*tensor++, static_cast<ptrdiff_t>(which) * layer.outputs);
        }
        return tensor;
    }
};
