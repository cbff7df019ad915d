// Linear layers with ReLUs, or in TD7 ELUs, between them, forward and backward, for some rows of the batch.
//
// A delta is the loss's gradient with respect to a layer's outputs before their ReLU.

struct Layer {
    int inputs = 0, outputs = 0;
    Parameter weight, bias;
};

using Layers = std::vector<Layer>;

struct Rows {
    int from, to;
    int count() const { return to - from; }
};

enum class Weights { online, target };

// PyTorch keeps the actor's weights as (outputs, inputs), the critics' as (inputs, outputs).
enum class WeightOrder { outputs_first, inputs_first };

static void forward(const Layer& layer, Weights weights, WeightOrder order, Epilogue activation, int rows,
                    const float* x, ptrdiff_t x_row, float* y, ptrdiff_t y_row) {
    const Parameter& weight = layer.weight;
    const bool online = weights == Weights::online, transpose = order == WeightOrder::outputs_first;
    const Packed& packed = transpose ? (online ? weight.transposed : weight.target_transposed)
                                     : (online ? weight.direct : weight.target_direct);
    Product p{};
    p.rows = rows, p.columns = layer.outputs, p.depth = layer.inputs;
    p.a = x, p.a_row = x_row, p.a_step = 1;
    p.b = packed.memory.data(), p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(layer.inputs) * PANEL;
    p.c = y, p.c_row = y_row;
    p.bias = (online ? layer.bias.direct : layer.bias.target_direct).memory.data();
    p.epilogue = activation;
    multiply(p);
}

// From the last layer's deltas to every hidden layer's; with a ReLU's mask, zero where it was closed.
static void backward(const Layers& network, WeightOrder order, Rows rows, std::vector<Matrix>& activations,
                     std::vector<Matrix>& deltas, Epilogue slope = Epilogue::mask) {
    for (size_t i = network.size() - 1; i > 0; --i) {
        const Layer& layer = network[i];
        const bool last = i + 1 == network.size();  // a critic's last weight is the same in both orders
        const bool direct = order == WeightOrder::outputs_first || last;
        const Packed& packed = direct ? layer.weight.direct : layer.weight.transposed;
        Product p{};
        p.rows = rows.count(), p.columns = layer.inputs, p.depth = layer.outputs;
        p.a = deltas[i].at(rows.from), p.a_row = deltas[i].row, p.a_step = 1;
        p.b = packed.memory.data(), p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(layer.outputs) * PANEL;
        p.c = deltas[i - 1].at(rows.from), p.c_row = deltas[i - 1].row;
        p.epilogue = slope, p.mask = activations[i - 1].at(rows.from);
        multiply(p);
    }
}

// From a layer's deltas to the gradient in those of its inputs that are the first `columns` of a packed weight.
static void backward_to_inputs(const Layer& layer, const Packed& packed, int columns, Rows rows, Matrix& deltas,
                               Matrix& to) {
    Product p{};
    p.rows = rows.count(), p.columns = columns, p.depth = layer.outputs;
    p.a = deltas.at(rows.from), p.a_row = deltas.row, p.a_step = 1;
    p.b = packed.memory.data(), p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(layer.outputs) * PANEL;
    p.c = to.at(rows.from), p.c_row = to.row;
    multiply(p);
}

// x, or the bound −most or most that it is beyond; NaN stays NaN.
static INLINE float within(float x, float most) { return x > most ? most : x < -most ? -most : x; }

// A critic's loss of one error with prioritised sampling.
static INLINE float lap_loss(float error, float floor) {
    const float size = std::abs(error);
    return size < floor ? 0.5f * size * size : floor * size;
}

static void apply_tanh(const float* output, float* action, int actions) {
    for (int j = 0; j < actions; j += WIDTH) {
        store_some(action + j, hyperbolic_tangent(load(output + j)), std::min(WIDTH, actions - j));
    }
}
