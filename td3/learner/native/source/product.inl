// The matrix product, C = ending(start + A · B): one kernel for the way forward, the way back and the gradients.
//
// A tile of ROWS × VECTORS vectors of C stays in registers while A's numbers are broadcast against B's lines. B is read in
// panels of 16 columns, which lie in memory line by line (packed weights) or as columns of a matrix (activations); a
// panel stays in the first cache while the tiles of one strip of columns pass by. Each number of C is one chain of
// multiply-adds along the depth, wherever its tile lies and however the rows are split.

constexpr int PANEL = 16;  // columns of a packed panel: one cache line
constexpr int STRIP = VECTORS * WIDTH;  // columns of a full tile

static_assert(STRIP % PANEL == 0, "a tile covers whole panels");

enum class Ending { plain, relu, masked };  // masked: zero wherever the mask is not above zero

struct Product {
    int rows, columns, depth;
    const float* a;
    ptrdiff_t a_row, a_step;  // from one row to the next, and from one number along the depth to the next
    const float* b;
    ptrdiff_t b_step, b_panel;  // from one line to the next, and from one panel to the next
    float* c;
    ptrdiff_t c_row;
    const float* start = nullptr;  // one number a column, or none: zero
    Ending ending = Ending::plain;
    const float* mask = nullptr;  // laid out as c
    int deep = 256;               // lines of a panel taken at once: 16 kB, half of the first cache
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
    } else if (p.start) {
        for (int v = 0; v < V; ++v) {
            const Vector start = load(p.start + column + v * WIDTH);
            for (int r = 0; r < R; ++r) sums[r][v] = start;
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
            const Vector factor = all(a[r * a_row]);
            for (int v = 0; v < V; ++v) sums[r][v] += factor * line[v];
        }
        a += a_step;
        b += b_step;
    }
    if (to == p.depth && p.ending == Ending::relu) {
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) sums[r][v] = relu(sums[r][v]);
    } else if (to == p.depth && p.ending == Ending::masked) {
        const float* mask = p.mask + row * p.c_row + column;
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v)
                sums[r][v] = load(mask + r * p.c_row + v * WIDTH) > Vector{} ? sums[r][v] : Vector{};
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(c + r * p.c_row + v * WIDTH, sums[r][v]);
}

// While a tile of these rows is computed, its share of the next strip's lines comes nearer, from wherever it lies.
static INLINE void fetch_ahead(const Product& p, int row, int height, int column, int from, int to) {
    const int next = column + STRIP;
    if (next >= p.columns) return;
    const float* b = p.b + next / PANEL * p.b_panel;
    const auto line = [&](int64_t place) { return from + static_cast<int>((to - from) * place / p.rows); };
    for (int k = line(row); k < line(row + height); ++k)
        for (int panel = 0; panel < STRIP / PANEL; ++panel) {
            __builtin_prefetch(b + k * p.b_step + panel * p.b_panel, 0, 2);  // to read, into the second cache
        }
}

// `count` tiles of `height` rows each.
template <int R, int V>
static INLINE void tiles(const Product& p, int height, int count, int row, int column, int from, int to) {
    if constexpr (R > 0) {
        if (height < R) return tiles<R - 1, V>(p, height, count, row, column, from, to);
        for (int i = 0; i < count; ++i) {
            fetch_ahead(p, row + i * R, R, column, from, to);
            tile<R, V>(p, row + i * R, column, from, to);
        }
    }
}

// A tile of few rows wastes the multipliers' time: the rows are spread evenly, over tiles of two heights.
template <int V>
static void strip(const Product& p, int column, int from, int to) {
    const int count = (p.rows + ROWS - 1) / ROWS, height = (p.rows + count - 1) / count;
    const int high = p.rows - count * (height - 1);
    tiles<ROWS, V>(p, height, high, 0, column, from, to);
    tiles<ROWS - 1, V>(p, height - 1, count - high, high * height, column, from, to);
}

static void multiply(const Product& p) {
    const int blocks = (p.depth + p.deep - 1) / p.deep;
    for (int block = 0; block < blocks; ++block) {
        const int from = static_cast<int>(int64_t{p.depth} * block / blocks);
        const int to = static_cast<int>(int64_t{p.depth} * (block + 1) / blocks);
        int column = 0;
        if (p.rows == 1) {  // one row has too few sums to keep the multipliers busy: take four strips at once
            const int padded = (p.columns + PANEL - 1) / PANEL * PANEL;
            for (; column + 4 * STRIP <= padded; column += 4 * STRIP) tile<1, 4 * VECTORS>(p, 0, column, from, to);
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

// One output: a dot product a row, along the vectors.
static void multiply_by_one_column(int rows, int depth, const float* a, ptrdiff_t a_row, const float* b, float start,
                                   float* c) {
    const int whole = depth / WIDTH * WIDTH;
    for (int row = 0; row < rows; ++row, a += a_row) {
        Vector sums[2] = {Vector{}, Vector{}};
        int k = 0;
        for (; k + 2 * WIDTH <= whole; k += 2 * WIDTH)
            for (int v = 0; v < 2; ++v) sums[v] += load(a + k + v * WIDTH) * load(b + k + v * WIDTH);
        if (k < whole) sums[0] += load(a + k) * load(b + k);
        sums[1] += load_some(a + whole, depth - whole) * load_some(b + whole, depth - whole);
        c[row] = start + sum(sums[0] + sums[1]);
    }
}
