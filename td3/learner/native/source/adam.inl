// Updates some rows of a parameter: gradient, Adam, target, then the packed copies that the kernels read.

constexpr double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-8;  // PyTorch's defaults

// A packed copy of a matrix: panels of 16 columns, each line by line, padded with zero columns.
struct Packed {
    Buffer memory;
    int first = 0;  // of a transposed copy: the row of the matrix that becomes column 0

    explicit operator bool() const { return memory.data() != nullptr; }
};

// A weight or bias, `rows` × `columns` as PyTorch keeps it, its packed copies, and the factors of its gradient.
struct Parameter {
    int rows = 0, columns = 0;
    Td3Tensor tensor{};
    Packed direct, transposed;
    Packed target_direct, target_transposed;  // of the target's value

    // The gradient is A · B: A (rows, batch), B (batch, columns).
    const float* a = nullptr;
    ptrdiff_t a_row = 0, a_step = 0;
    const float* b = nullptr;
    ptrdiff_t b_step = 0;
};

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
static INLINE void adam(float* value, float* mean, float* square, float* target, const float* gradient,
                        const AdamStep& step) {
    const Numbers g = load_as<Numbers>(gradient);
    const Numbers m = load_as<Numbers>(mean) + constant<Numbers>(1 - BETA1) * (g - load_as<Numbers>(mean));
    const Numbers s = constant<Numbers>(BETA2) * load_as<Numbers>(square) + constant<Numbers>(1 - BETA2) * g * g;
    const Numbers denominator = square_root(s) * constant<Numbers>(step.root_correction) + constant<Numbers>(EPSILON);
    const Numbers x = load_as<Numbers>(value) - constant<Numbers>(step.rate) * m / denominator;
    store(value, x), store(mean, m), store(square, s);
    if (target) store(target, load_as<Numbers>(target) + constant<Numbers>(step.tau) * (x - load_as<Numbers>(target)));
}

static void adam_row(const Td3Tensor& at, ptrdiff_t offset, int columns, const float* gradient, const AdamStep& step) {
    float *value = at.value + offset, *mean = at.mean + offset, *square = at.square + offset;
    float* target = step.move_target ? at.target + offset : nullptr;
    int i = 0;
    for (; i + WIDTH <= columns; i += WIDTH) {
        adam<Vector>(value + i, mean + i, square + i, target ? target + i : nullptr, gradient + i, step);
    }
    for (; i < columns; ++i) {
        adam<float>(value + i, mean + i, square + i, target ? target + i : nullptr, gradient + i, step);
    }
}

// Packs rows `from` to `to`: line r of the copy is row r of the matrix.
static void pack_direct(const float* matrix, int rows, int columns, int from, int to, Packed& packed) {
    float* memory = packed.memory.data();
    for (int column = 0; column < columns; column += PANEL) {
        const int width = std::min(PANEL, columns - column);
        for (int row = from; row < to; ++row) {
            float* line = memory + static_cast<ptrdiff_t>(column) * rows + row * PANEL;
            const float* source = matrix + static_cast<ptrdiff_t>(row) * columns + column;
            if (width == PANEL) {
                for (int i = 0; i < PANEL; i += WIDTH) store(line + i, load(source + i));
            } else {
                for (int i = 0; i < width; ++i) line[i] = source[i];
            }
        }
    }
}

// Packs rows `from` to `to`: line c of the copy is column c of the matrix, from its row `first` on.
static void pack_transposed(const float* matrix, int columns, int from, int to, Packed& packed) {
    for (int row = std::max(from, packed.first); row < to;) {
        const int index = row - packed.first;
        float* lines = packed.memory.data() + static_cast<ptrdiff_t>(index / PANEL) * columns * PANEL + index % PANEL;
        const float* source = matrix + static_cast<ptrdiff_t>(row) * columns;
        int column = 0;
        if (index % 8 == 0 && row + 8 <= to) {
            for (; column + 8 <= columns; column += 8) {
                transpose8x8(source + column, columns, lines + column * PANEL, PANEL);
            }
            for (; column < columns; ++column)
                for (int i = 0; i < 8; ++i) lines[column * PANEL + i] = source[i * columns + column];
            row += 8;
        } else {
            for (; column < columns; ++column) lines[column * PANEL] = source[column];
            row += 1;
        }
    }
}

static void pack(Parameter& p, int from, int to, bool targets) {
    if (p.direct) pack_direct(p.tensor.value, p.rows, p.columns, from, to, p.direct);
    if (p.transposed) pack_transposed(p.tensor.value, p.columns, from, to, p.transposed);
    if (targets && p.target_direct) pack_direct(p.tensor.target, p.rows, p.columns, from, to, p.target_direct);
    if (targets && p.target_transposed) pack_transposed(p.tensor.target, p.columns, from, to, p.target_transposed);
}

// Computes the gradient of rows `from` to `to` in `scratch` and applies it.
static void update_rows(Parameter& p, int from, int to, int batch, float* scratch, const AdamStep& step) {
    const int line = padded(p.columns);
    Product gradient{};
    gradient.rows = to - from, gradient.columns = p.columns, gradient.depth = batch;
    gradient.a = p.a + from * p.a_row, gradient.a_row = p.a_row, gradient.a_step = p.a_step;
    gradient.b = p.b, gradient.b_step = p.b_step, gradient.b_panel = PANEL;
    gradient.c = scratch, gradient.c_row = line;
    gradient.depth_block = 128;  // half as many: here A fills cache lines too, of which a tile reads only a part
    multiply(gradient);
    for (int row = from; row < to; ++row) {
        adam_row(p.tensor, static_cast<ptrdiff_t>(row) * p.columns, p.columns, scratch + (row - from) * line, step);
    }
    pack(p, from, to, step.move_target);
}
