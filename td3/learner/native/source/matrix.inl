// A matrix of floats whose rows the product can read and write in whole vectors.

struct Matrix {
    Buffer memory;
    int row = 0;  // floats from one row to the next
    Matrix() = default;
    Matrix(int64_t rows, int columns)
        : memory(static_cast<size_t>(rows) * static_cast<size_t>(padded(columns)) + STRIP), row(padded(columns)) {}
    float* at(int64_t i) { return memory.data() + i * row; }
};
