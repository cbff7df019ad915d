// The networks: the actor, both critics, and with each parameter its target.

struct Networks {
    const int observations, actions;
    std::vector<int> hidden;
    Layers actor, critics[2];

    // With `acting` alone there are no critics, no targets and no copies for the backward pass.
    Networks(const Td3Shape& shape, bool acting)
        : observations(static_cast<int>(shape.observations)), actions(static_cast<int>(shape.actions)) {
        for (int64_t i = 0; i + 1 < shape.layers; ++i) hidden.push_back(static_cast<int>(shape.hidden[i]));
        make_actor(acting);
        if (acting) return;
        for (int which = 0; which < 2; ++which) make_critic(which);
    }

    void bind(const Td3Tensor* actor_tensors, const Td3Tensor* critic_tensors) {
        for (Layer& layer : actor) {
            layer.weight.tensor = *actor_tensors++;
            layer.bias.tensor = *actor_tensors++;
        }
        for (int which = 0; which < 2; ++which) {
            const Td3Tensor* tensor = critic_tensors;
            for (Layer& layer : critics[which]) {
                const ptrdiff_t weights = static_cast<ptrdiff_t>(layer.inputs) * layer.outputs;
                layer.weight.tensor = offset_by(*tensor++, which * weights);
                layer.bias.tensor = offset_by(*tensor++, static_cast<ptrdiff_t>(which) * layer.outputs);
            }
        }
    }

    void pack_all() {
        for (Layers* network : {&actor, &critics[0], &critics[1]}) {
            for (Layer& layer : *network) {
                for (Parameter* p : {&layer.weight, &layer.bias}) pack(*p, 0, p->rows, p->tensor.target != nullptr);
            }
        }
    }

    // PyTorch counts each tensor's steps in a float of its own; both critics share theirs.
    static double count_step(Layers& network) {
        for (Layer& layer : network) {
            *layer.weight.tensor.step += 1;
            *layer.bias.tensor.step += 1;
        }
        return *network.front().weight.tensor.step;
    }

    static Td3Tensor offset_by(Td3Tensor tensor, ptrdiff_t offset) {
        for (float** part : {&tensor.value, &tensor.mean, &tensor.square, &tensor.target}) {
            if (*part) *part += offset;
        }
        return tensor;
    }

    static Packed direct_of(const Parameter& p) {
        return {Buffer(static_cast<size_t>(p.rows) * round_up(p.columns, STRIP)), 0};
    }

    static Packed transposed_of(const Parameter& p, int first = 0) {
        return {Buffer(static_cast<size_t>(p.columns) * round_up(p.rows - first, STRIP)), first};
    }

    static Layer& add_layer(Layers& network, int inputs, int outputs) {
        Layer& layer = network.emplace_back();
        layer.inputs = inputs, layer.outputs = outputs;
        layer.bias.rows = 1, layer.bias.columns = outputs;
        layer.bias.direct = direct_of(layer.bias);
        return layer;
    }

  private:
    void make_actor(bool acting) {
        int inputs = observations;
        for (size_t i = 0; i <= hidden.size(); ++i) {
            const int outputs = i < hidden.size() ? hidden[i] : actions;
            Layer& layer = add_layer(actor, inputs, outputs);
            Parameter& weight = layer.weight;
            weight.rows = outputs, weight.columns = inputs;
            weight.transposed = transposed_of(weight);
            if (!acting) {
                weight.target_transposed = transposed_of(weight);
                layer.bias.target_direct = direct_of(layer.bias);
                if (i > 0) weight.direct = direct_of(weight);
            }
            inputs = outputs;
        }
    }

    void make_critic(int which) {
        int inputs = observations + actions;
        for (size_t i = 0; i <= hidden.size(); ++i) {
            const bool last = i == hidden.size();
            const int outputs = last ? 1 : hidden[i];
            Layer& layer = add_layer(critics[which], inputs, outputs);
            Parameter& weight = layer.weight;
            weight.rows = last ? 1 : inputs, weight.columns = last ? inputs : outputs;  // (inputs, 1) is (1, inputs)
            weight.direct = direct_of(weight), weight.target_direct = direct_of(weight);
            layer.bias.target_direct = direct_of(layer.bias);
            if (!last && (i > 0 || which == 0)) weight.transposed = transposed_of(weight, i == 0 ? observations : 0);
            inputs = outputs;
        }
    }
};
