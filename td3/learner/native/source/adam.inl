// One sweep over some rows of a parameter: Adam, then the target's step towards it, then the copies the kernels read.

constexpr double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-8;  // Adam's usual numbers, as in PyTorch

// A packed copy: panels of 16 columns, line by line, zero where the matrix has no more columns.
struct Packed {
    Buffer memory;
    int first = 0;  // of an `across` copy: the parameter's row that is its first column

    explicit operator bool() const { return memory.data() != nullptr; }
};

// A weight or a bias: `rows` × `columns` as PyTorch keeps it, and what its gradient is the product of.
struct Parameter {
    int rows = 0, columns = 0;
    Td3Tensor tensor{};
    Packed direct, across;                // panels of columns, and of rows
    Packed target_direct, target_across;  // the same of the target

    // The gradient is A · B: A (rows, batch), B (batch, columns).
    const float* a = nullptr;
    ptrdiff_t a_row = 0, a_step = 0;
    const float* b = nullptr;
    ptrdiff_t b_step = 0;
};

struct Sweep {
    float rate, root_correction;  // lr / (1 − β₁ᵗ) and 1 / √(1 − β₂ᵗ)
    float tau;
    bool follow;  // whether targets move
};

static Sweep sweep_at(double step, double lr, double tau, bool follow) {
    return {static_cast<float>(lr / (1 - std::pow(BETA1, step))),
            static_cast<float>(1 / std::sqrt(1 - std::pow(BETA2, step))), static_cast<float>(tau), follow};
}

// For a vector of numbers, or for one.
template <class Numbers>
static INLINE void adam(float* value, float* mean, float* square, float* target, const float* gradient,
                        const Sweep& sweep) {
    const Numbers g = get<Numbers>(gradient);
    const Numbers m = get<Numbers>(mean) + each<Numbers>(1 - BETA1) * (g - get<Numbers>(mean));
    const Numbers s = each<Numbers>(BETA2) * get<Numbers>(square) + each<Numbers>(1 - BETA2) * g * g;
    const Numbers spread = square_root(s) * each<Numbers>(sweep.root_correction) + each<Numbers>(EPSILON);
    const Numbers x = get<Numbers>(value) - each<Numbers>(sweep.rate) * m / spread;
    put(value, x), put(mean, m), put(square, s);
    if (target) put(target, get<Numbers>(target) + each<Numbers>(sweep.tau) * (x - get<Numbers>(target)));
}

static void adam_row(const Td3Tensor& at, ptrdiff_t offset, int columns, const float* gradient, const Sweep& sweep) {
    float *value = at.value + offset, *mean = at.mean + offset, *square = at.square + offset;
    float* target = sweep.follow ? at.target + offset : nullptr;
    int i = 0;
    for (; i + WIDTH <= columns; i += WIDTH) {
        adam<Vector>(value + i, mean + i, square + i, target ? target + i : nullptr, gradient + i, sweep);
    }
    for (; i < columns; ++i) {
        adam<float>(value + i, mean + i, square + i, target ? target + i : nullptr, gradient + i, sweep);
    }
}

// Line r of the packed copy is row r of the matrix.
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

// Line c of the packed copy is column c of the matrix, from its row `first` on.
static void pack_across(const float* matrix, int columns, int from, int to, Packed& packed) {
    for (int row = std::max(from, packed.first); row < to;) {
        const int place = row - packed.first;
        float* lines = packed.memory.data() + static_cast<ptrdiff_t>(place / PANEL) * columns * PANEL + place % PANEL;
        const float* source = matrix + static_cast<ptrdiff_t>(row) * columns;
        int column = 0;
        if (place % 8 == 0 && row + 8 <= to) {
            for (; column + 8 <= columns; column += 8) turn(source + column, columns, lines + column * PANEL, PANEL);
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
    if (p.across) pack_across(p.tensor.value, p.columns, from, to, p.across);
    if (targets && p.target_direct) pack_direct(p.tensor.target, p.rows, p.columns, from, to, p.target_direct);
    if (targets && p.target_across) pack_across(p.tensor.target, p.columns, from, to, p.target_across);
}

// The gradient of rows `from` to `to`, in `scratch`, and at once what Adam makes of it.
static void learn_rows(Parameter& p, int from, int to, int batch, float* scratch, const Sweep& sweep) {
    const int line = padded(p.columns);
    Product gradient{};
    gradient.rows = to - from, gradient.columns = p.columns, gradient.depth = batch;
    gradient.a = p.a + from * p.a_row, gradient.a_row = p.a_row, gradient.a_step = p.a_step;
    gradient.b = p.b, gradient.b_step = p.b_step, gradient.b_panel = PANEL;
    gradient.c = scratch, gradient.c_row = line;
    gradient.deep = 128;  // here A comes in whole cache lines too, of which a tile reads a part
    multiply(gradient);
    for (int row = from; row < to; ++row) {
        adam_row(p.tensor, static_cast<ptrdiff_t>(row) * p.columns, p.columns, scratch + (row - from) * line, sweep);
    }
    pack(p, from, to, sweep.follow);
}
