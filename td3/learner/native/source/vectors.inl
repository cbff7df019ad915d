// Vectors of WIDTH floats in the compiler's vector types: the same source for every processor.

typedef float Vector __attribute__((vector_size(WIDTH * 4)));
typedef float Unaligned __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef int32_t Mask __attribute__((vector_size(WIDTH * 4)));

#define INLINE inline __attribute__((always_inline))

static INLINE Vector load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
static INLINE void store(float* to, Vector x) { *reinterpret_cast<Unaligned*>(to) = x; }
static INLINE Vector broadcast(float x) { return x - Vector{}; }
static INLINE Vector relu(Vector x) { return Vector{} > x ? Vector{} : x; }  // NaN stays NaN
static INLINE Vector minimum(Vector x, Vector y) { return x < y ? x : y; }

static INLINE Vector square_root(Vector x) {
    Vector root;
    for (int i = 0; i < WIDTH; ++i) root[i] = __builtin_sqrtf(x[i]);
    return root;
}

// The same functions for a vector and for one float, so that one loop body also serves the last few floats of a row.
template <class Numbers> static Numbers load_as(const float* from);
template <> INLINE Vector load_as<Vector>(const float* from) { return load(from); }
template <> INLINE float load_as<float>(const float* from) { return *from; }
static INLINE void store(float* to, float x) { *to = x; }
template <class Numbers> static Numbers constant(float x);
template <> INLINE Vector constant<Vector>(float x) { return broadcast(x); }
template <> INLINE float constant<float>(float x) { return x; }
static INLINE float square_root(float x) { return __builtin_sqrtf(x); }

static INLINE float sum(Vector x) {
    float total = 0;
    for (int i = 0; i < WIDTH; ++i) total += x[i];
    return total;
}

// Loads the first `count` floats and fills the rest with zeros.
static INLINE Vector load_some(const float* from, int count) {
    Vector x{};
    for (int i = 0; i < count; ++i) x[i] = from[i];
    return x;
}

static INLINE void store_some(float* to, Vector x, int count) {
    for (int i = 0; i < count; ++i) to[i] = x[i];
}

// Writes the transpose of a block of 8 × 8 floats.
static INLINE void transpose8x8(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row) {
#if defined(TD3_SHUFFLES)
    typedef float Float8 __attribute__((vector_size(32)));
    typedef float Unaligned8 __attribute__((vector_size(32), aligned(4), may_alias));
    Float8 x[8], pairs[8], fours[8];
    for (int i = 0; i < 8; ++i) x[i] = *reinterpret_cast<const Unaligned8*>(from + i * from_row);
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pairs[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4) {
        for (int j = 0; j < 2; ++j) {
            fours[i + 2 * j] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            fours[i + 2 * j + 1] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (int i = 0; i < 4; ++i) {
        *reinterpret_cast<Unaligned8*>(to + i * to_row) =
            __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *reinterpret_cast<Unaligned8*>(to + (i + 4) * to_row) =
            __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#else
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) to[j * to_row + i] = from[i * from_row + j];
#endif
}

// e^x for −88 < x < 0, as 2^n · e^r with |r| ≤ ½ ln 2; e^r is its Taylor series to the seventh power.
static INLINE Vector exponential(Vector x) {
    const Vector exponent = x * broadcast(1.44269504f);
    const Mask n = __builtin_convertvector(exponent - broadcast(0.5f), Mask);  // rounds to nearest: x is negative
    const Vector whole = __builtin_convertvector(n, Vector);
    const Vector r = (x - whole * broadcast(0.693359375f)) - whole * broadcast(-2.12194440e-4f);  // ln 2 in two parts
    Vector series = broadcast(1.0f / 5040);
    for (float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
        series = series * r + broadcast(factor);
    }
    const Mask power = (n + 127) << 23;
    return series * (Vector)power;
}

// x above zero, e^x − 1 below, where 2^n · e^r − 1 is 2^n · (e^r − 1) + (2^n − 1) so that nothing cancels near zero.
static INLINE Vector elu(Vector x) {
    const Vector zero{}, least = broadcast(-20.0f), below = least < x ? x : least;  // e^−20 − 1 is −1
    const Vector exponent = below * broadcast(1.44269504f);
    const Mask n = __builtin_convertvector(exponent - broadcast(0.5f), Mask);
    const Vector whole = __builtin_convertvector(n, Vector);
    const Vector r = (below - whole * broadcast(0.693359375f)) - whole * broadcast(-2.12194440e-4f);
    Vector series = broadcast(1.0f / 5040);
    for (float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f}) series = series * r + broadcast(factor);
    const Vector power = (Vector)((n + 127) << 23);
    const Vector low = (r + r * r * series) * power + (power - broadcast(1.0f));
    return x < zero ? low : x;  // NaN stays NaN
}

// The slope of an ELU where its output is y.
static INLINE Vector elu_slope(Vector y) { return y < Vector{} ? y + broadcast(1.0f) : broadcast(1.0f); }

// tanh within a few units in the last place: its Taylor series near zero, (1 − e^−2|x|) / (1 + e^−2|x|) elsewhere.
static INLINE Vector hyperbolic_tangent(Vector x) {
    const Vector zero{}, magnitude = x < zero ? -x : x;
    const Vector decay = exponential(broadcast(-2.0f) * minimum(magnitude, broadcast(20.0f)));
    const Vector far = (broadcast(1.0f) - decay) / (broadcast(1.0f) + decay);
    const Vector square = x * x;
    Vector series = broadcast(21844.0f / 6081075);
    for (float factor : {-1382.0f / 155925, 62.0f / 2835, -17.0f / 315, 2.0f / 15, -1.0f / 3}) {
        series = series * square + broadcast(factor);
    }
    const Vector near = x + x * square * series;
    const Vector signed_far = x < zero ? -far : far;
    return magnitude < broadcast(0.35f) ? near : (magnitude == magnitude ? signed_far : x);  // NaN stays NaN
}
