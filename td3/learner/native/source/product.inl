// The matrix product C = epilogue(bias + A · B): one kernel for forward passes, backward passes and weight gradients.
//
// A tile of ROWS × VECTORS vectors of C stays in registers while each number of A is multiplied with a line of B. B is
// read in panels of 16 columns: packed weights, or columns of a matrix of activations. A panel stays in the L1 cache
// while all tiles of its columns are computed. Each number of C is summed along the depth in one fixed order, whatever
// tile it is in and however the rows are split.

constexpr int PANEL = 16;  // columns of a packed panel: one cache line
constexpr int STRIP = VECTORS * WIDTH;  // columns of a full tile

static_assert(STRIP % PANEL == 0, "a tile covers whole panels");

// mask: zero wherever the mask, a ReLU's output, is not above zero; slope: times the slope of an ELU with that output
enum class Epilogue { none, relu, mask, elu, slope };

struct Product {
    int rows, columns, depth;
    const float* a;
    ptrdiff_t a_row, a_step;  // from one row to the next, and from one number along the depth to the next
    const float* b;
    ptrdiff_t b_step, b_panel;  // from one line to the next, and from one panel to the next
    float* c;
    ptrdiff_t c_row;
    const float* bias = nullptr;  // one number per column; nullptr: zero
    Epilogue epilogue = Epilogue::none;
    const float* mask = nullptr;  // same layout as c
    int depth_block = 256;        // lines of a panel per block: 16 kB, half of the L1 cache
};

template <int R, int V>
static INLINE void tile(const Product& p, int row, int column, int from, int to) {
    const float* a = p.a + row * p.a_row + from * p.a_step;
    const float* b = p.b + column / PANEL * p.b_panel + column % PANEL + from * p.b_step;
    float* c = p.c + row * p.c_row + column;
    Vector sums[R][V];
    if (from > 0) {
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) sums[r][v] = load(c + r * p.c_row + v * WIDTH);
    } else if (p.bias) {
        for (int v = 0; v < V; ++v) {
            const Vector bias = load(p.bias + column + v * WIDTH);
            for (int r = 0; r < R; ++r) sums[r][v] = bias;
        }
    } else {
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) sums[r][v] = Vector{};
    }
    const ptrdiff_t a_row = p.a_row, a_step = p.a_step, b_step = p.b_step, b_panel = p.b_panel;
#pragma GCC unroll 2
    for (int k = from; k < to; ++k) {
        Vector line[V];
        for (int v = 0; v < V; ++v) line[v] = load(b + v * WIDTH / PANEL * b_panel + v * WIDTH % PANEL);
        for (int r = 0; r < R; ++r) {
            const Vector factor = broadcast(a[r * a_row]);
            for (int v = 0; v < V; ++v) sums[r][v] += factor * line[v];
        }
        a += a_step;
        b += b_step;
    }
    if (to == p.depth && p.epilogue == Epilogue::relu) {
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) sums[r][v] = relu(sums[r][v]);
    } else if (to == p.depth && p.epilogue == Epilogue::mask) {
        const float* mask = p.mask + row * p.c_row + column;
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                sums[r][v] = load(mask + r * p.c_row + v * WIDTH) > Vector{} ? sums[r][v] : Vector{};
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(c + r * p.c_row + v * WIDTH, sums[r][v]);
}

// ELU and its slope, of a tile that was just stored: inside `tile`, each of its sizes would have a long copy of them.
static __attribute__((noinline)) void finish(const Product& p, int row, int rows, int column, int width) {
    for (int r = row; r < row + rows; ++r) {
        float* c = p.c + r * p.c_row + column;
        if (p.epilogue == Epilogue::elu) {
            for (int i = 0; i < width; i += WIDTH) store(c + i, elu(load(c + i)));
        } else {
            const float* output = p.mask + r * p.c_row + column;
            for (int i = 0; i < width; i += WIDTH) store(c + i, load(c + i) * elu_slope(load(output + i)));
        }
    }
}

static INLINE bool is_finished(const Product& p, int to) { return to < p.depth || p.epilogue < Epilogue::elu; }

// Prefetches this tile's share of the next strip's lines while the tile is computed.
static INLINE void prefetch_next_strip(const Product& p, int row, int height, int column, int from, int to) {
    const int next = column + STRIP;
    if (next >= p.columns) return;
    const float* b = p.b + next / PANEL * p.b_panel;
    const auto line = [&](int64_t index) { return from + static_cast<int>((to - from) * index / p.rows); };
    for (int k = line(row); k < line(row + height); ++k)
        for (int panel = 0; panel < STRIP / PANEL; ++panel) {
            __builtin_prefetch(b + k * p.b_step + panel * p.b_panel, 0, 2);  // for reading, into L2
        }
}

// Computes `count` tiles of `height` rows each.
template <int R, int V>
static INLINE void tiles(const Product& p, int height, int count, int row, int column, int from, int to) {
    if constexpr (R > 0) {
        if (height < R) return tiles<R - 1, V>(p, height, count, row, column, from, to);
        for (int i = 0; i < count; ++i) {
            prefetch_next_strip(p, row + i * R, R, column, from, to);
            tile<R, V>(p, row + i * R, column, from, to);
            if (!is_finished(p, to)) finish(p, row + i * R, R, column, V * WIDTH);
        }
    }
}

// A tile of few rows leaves the multipliers idle, so the rows are divided evenly into tiles of two heights.
template <int V>
static void strip(const Product& p, int column, int from, int to) {
    const int count = (p.rows + ROWS - 1) / ROWS, height = (p.rows + count - 1) / count;
    const int high = p.rows - count * (height - 1);
    tiles<ROWS, V>(p, height, high, 0, column, from, to);
    tiles<ROWS - 1, V>(p, height - 1, count - high, high * height, column, from, to);
}

static void multiply(const Product& p) {
    const int blocks = (p.depth + p.depth_block - 1) / p.depth_block;
    for (int block = 0; block < blocks; ++block) {
        const int from = static_cast<int>(int64_t{p.depth} * block / blocks);
        const int to = static_cast<int>(int64_t{p.depth} * (block + 1) / blocks);
        int column = 0;
        if (p.rows == 1) {  // one row has too few sums to keep the multipliers busy: compute four strips at once
            const int padded = (p.columns + PANEL - 1) / PANEL * PANEL;
            for (; column + 4 * STRIP <= padded; column += 4 * STRIP) {
                tile<1, 4 * VECTORS>(p, 0, column, from, to);
                if (!is_finished(p, to)) finish(p, 0, 1, column, 4 * STRIP);
            }
        }
        while (column < p.columns) {
            if (p.columns - column <= WIDTH) {
                strip<1>(p, column, from, to);
                column += WIDTH;
            } else {
                strip<VECTORS>(p, column, from, to);
                column += STRIP;
            }
        }
    }
}

// A layer with one output: one dot product per row, with vectors along the depth.
static void multiply_by_one_column(int rows, int depth, const float* a, ptrdiff_t a_row, const float* b, float bias,
                                   float* c) {
    const int whole = depth / WIDTH * WIDTH;
    for (int row = 0; row < rows; ++row, a += a_row) {
        Vector sums[2] = {Vector{}, Vector{}};
        int k = 0;
        for (; k + 2 * WIDTH <= whole; k += 2 * WIDTH)
            for (int v = 0; v < 2; ++v) sums[v] += load(a + k + v * WIDTH) * load(b + k + v * WIDTH);
        if (k < whole) sums[0] += load(a + k) * load(b + k);
        sums[1] += load_some(a + whole, depth - whole) * load_some(b + whole, depth - whole);
        c[row] = bias + sum(sums[0] + sums[1]);
    }
}
