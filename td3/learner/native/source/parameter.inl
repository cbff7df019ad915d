// A weight or bias: PyTorch's tensors, and packed copies of them in the order that the product reads.

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

    // A weight's gradient is leftᵀ · right.
    void set_gradient(Matrix& left, Matrix& right) {
        a = left.at(0), a_row = 1, a_step = left.row;
        b = right.at(0), b_step = right.row;
    }

    // A bias's gradient is the sum of its deltas.
    void set_gradient(Matrix& deltas) {
        static const float one = 1.0f;
        a = &one, a_row = 0, a_step = 0;
        b = deltas.at(0), b_step = deltas.row;
    }
};

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

static void pack_target(Parameter& p, int from, int to) {
    if (p.target_direct) pack_direct(p.tensor.target, p.rows, p.columns, from, to, p.target_direct);
    if (p.target_transposed) pack_transposed(p.tensor.target, p.columns, from, to, p.target_transposed);
}

static void pack(Parameter& p, int from, int to, bool targets) {
    if (p.direct) pack_direct(p.tensor.value, p.rows, p.columns, from, to, p.direct);
    if (p.transposed) pack_transposed(p.tensor.value, p.columns, from, to, p.transposed);
    if (targets) pack_target(p, from, to);
}
