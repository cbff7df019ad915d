// AvgL1Norm: each row divided by the mean size of its numbers, and its gradient.

constexpr float SMALLEST = 1e-8f;  // mean size that a row is divided by

// y = x / max(mean |x_j|, SMALLEST). It writes no more than `columns` numbers of a row: others may be beside them.
static void normalise(int rows, int columns, const float* x, ptrdiff_t x_row, float* y, ptrdiff_t y_row,
                      float* means) {
    const int whole = columns / WIDTH * WIDTH;
    for (int row = 0; row < rows; ++row, x += x_row, y += y_row) {
        Vector sizes[2] = {Vector{}, Vector{}};
        const auto size = [](Vector numbers) { return numbers < Vector{} ? -numbers : numbers; };
        for (int i = 0; i < whole; i += WIDTH) sizes[i / WIDTH % 2] += size(load(x + i));
        sizes[1] += size(load_some(x + whole, columns - whole));
        const float mean = sum(sizes[0] + sizes[1]) / static_cast<float>(columns);
        const Vector factor = broadcast(1.0f / (mean < SMALLEST ? SMALLEST : mean));  // NaN stays NaN
        for (int i = 0; i < whole; i += WIDTH) store(y + i, load(x + i) * factor);
        store_some(y + whole, load_some(x + whole, columns - whole) * factor, columns - whole);
        means[row] = mean;
    }
}

// From the gradient in y to that in x: (g_i − sign(y_i) · mean of g_j y_j) / mean |x_j|. `g` and `to` may be the same.
static void normalise_backward(int rows, int columns, const float* y, ptrdiff_t y_row, const float* means,
                               const float* g, ptrdiff_t g_row, float* to, ptrdiff_t to_row) {
    const int whole = columns / WIDTH * WIDTH, rest = columns - whole;
    for (int row = 0; row < rows; ++row, y += y_row, g += g_row, to += to_row) {
        Vector sums[2] = {Vector{}, Vector{}};
        for (int i = 0; i < whole; i += WIDTH) sums[i / WIDTH % 2] += load(g + i) * load(y + i);
        sums[1] += load_some(g + whole, rest) * load_some(y + whole, rest);
        const bool constant_divisor = means[row] < SMALLEST;
        const float along = constant_divisor ? 0.0f : sum(sums[0] + sums[1]) / static_cast<float>(columns);
        const Vector shared = broadcast(along), factor = broadcast(1.0f / (constant_divisor ? SMALLEST : means[row]));
        const auto into = [&](Vector gradient, Vector output) {
            const Vector zero{}, part = output > zero ? shared : output < zero ? -shared : zero;
            return (gradient - part) * factor;
        };
        for (int i = 0; i < whole; i += WIDTH) store(to + i, into(load(g + i), load(y + i)));
        store_some(to + whole, into(load_some(g + whole, rest), load_some(y + whole, rest)), rest);
    }
}
