// The step of a parameter: its gradient, Adam (in steps 12 and 13), and in a delayed update the target (14 and 15).

constexpr double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-8;  // PyTorch's defaults

struct AdamStep {
    float rate, root_correction;  // lr / (1 − β₁ᵗ) and 1 / √(1 − β₂ᵗ)
    float tau;
    bool move_target;
};

static AdamStep adam_step(double step, double lr, double tau, bool move_target) {
    return {static_cast<float>(lr / (1 - std::pow(BETA1, step))),
            static_cast<float>(1 / std::sqrt(1 - std::pow(BETA2, step))), static_cast<float>(tau), move_target};
}

// Numbers is a Vector or a float.
template <class Numbers>
static INLINE Numbers adam(float* value, float* mean, float* square, const float* gradient, const AdamStep& step) {
    const Numbers g = load_as<Numbers>(gradient);
    const Numbers m = load_as<Numbers>(mean) + constant<Numbers>(1 - BETA1) * (g - load_as<Numbers>(mean));
    const Numbers s = constant<Numbers>(BETA2) * load_as<Numbers>(square) + constant<Numbers>(1 - BETA2) * g * g;
    const Numbers denominator = square_root(s) * constant<Numbers>(step.root_correction) + constant<Numbers>(EPSILON);
    const Numbers x = load_as<Numbers>(value) - constant<Numbers>(step.rate) * m / denominator;
    store(value, x), store(mean, m), store(square, s);
    return x;
}

// 14 · The actor target moves a little towards the actor.
// 15 · The critic targets move a little towards the critics.
template <class Numbers>
static INLINE void polyak(float* target, Numbers value, float tau) {
    store(target, load_as<Numbers>(target) + constant<Numbers>(tau) * (value - load_as<Numbers>(target)));
}

static void step_row(const Td3Tensor& at, ptrdiff_t offset, int columns, const float* gradient, const AdamStep& step) {
    float *value = at.value + offset, *mean = at.mean + offset, *square = at.square + offset;
    float* target = step.move_target ? at.target + offset : nullptr;
    int i = 0;
    for (; i + WIDTH <= columns; i += WIDTH) {
        const Vector moved = adam<Vector>(value + i, mean + i, square + i, gradient + i, step);
        if (target) polyak(target + i, moved, step.tau);
    }
    for (; i < columns; ++i) {
        const float moved = adam<float>(value + i, mean + i, square + i, gradient + i, step);
        if (target) polyak(target + i, moved, step.tau);
    }
}

// Computes the gradient of rows `from` to `to` in `scratch`, applies it, and packs the new values.
static void step_parameter(Parameter& p, int from, int to, int batch, float* scratch, const AdamStep& step) {
    const int line = padded(p.columns);
    Product gradient{};
    gradient.rows = to - from, gradient.columns = p.columns, gradient.depth = batch;
    gradient.a = p.a + from * p.a_row, gradient.a_row = p.a_row, gradient.a_step = p.a_step;
    gradient.b = p.b, gradient.b_step = p.b_step, gradient.b_panel = PANEL;
    gradient.c = scratch, gradient.c_row = line;
    gradient.depth_block = 128;  // half as many: here A fills cache lines too, of which a tile reads only a part
    multiply(gradient);
    for (int row = from; row < to; ++row) {
        step_row(p.tensor, static_cast<ptrdiff_t>(row) * p.columns, p.columns, scratch + (row - from) * line, step);
    }
    pack(p, from, to, step.move_target);
}
