// Vectors of WIDTH floats, in the compiler's own vector types: the same source for every kind of processor.

typedef float Vector __attribute__((vector_size(WIDTH * 4)));
typedef float Unaligned __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef int32_t Mask __attribute__((vector_size(WIDTH * 4)));

#define INLINE inline __attribute__((always_inline))

static INLINE Vector load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
static INLINE void store(float* to, Vector x) { *reinterpret_cast<Unaligned*>(to) = x; }
static INLINE Vector all(float x) { return x - Vector{}; }
static INLINE Vector relu(Vector x) { return Vector{} > x ? Vector{} : x; }  // what is no number stays none
static INLINE Vector smaller(Vector x, Vector y) { return x < y ? x : y; }

static INLINE Vector square_root(Vector x) {
    Vector root;
    for (int i = 0; i < WIDTH; ++i) root[i] = __builtin_sqrtf(x[i]);
    return root;
}

// The same for a vector or for a single number, for loops whose last numbers fill no vector.
template <class Numbers> static Numbers get(const float* from);
template <> INLINE Vector get<Vector>(const float* from) { return load(from); }
template <> INLINE float get<float>(const float* from) { return *from; }
static INLINE void put(float* to, Vector x) { store(to, x); }
static INLINE void put(float* to, float x) { *to = x; }
template <class Numbers> static Numbers each(float x);
template <> INLINE Vector each<Vector>(float x) { return all(x); }
template <> INLINE float each<float>(float x) { return x; }
static INLINE float square_root(float x) { return __builtin_sqrtf(x); }

static INLINE float sum(Vector x) {
    float total = 0;
    for (int i = 0; i < WIDTH; ++i) total += x[i];
    return total;
}

// The first `count` floats, and zero behind them.
static INLINE Vector load_some(const float* from, int count) {
    Vector x{};
    for (int i = 0; i < count; ++i) x[i] = from[i];
    return x;
}

static INLINE void store_some(float* to, Vector x, int count) {
    for (int i = 0; i < count; ++i) to[i] = x[i];
}

// Eight rows of eight become eight columns.
static INLINE void turn(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row) {
#if defined(TD3_SHUFFLES)
    typedef float Eight __attribute__((vector_size(32)));
    typedef float Loose __attribute__((vector_size(32), aligned(4), may_alias));
    Eight x[8], pairs[8], fours[8];
    for (int i = 0; i < 8; ++i) x[i] = *reinterpret_cast<const Loose*>(from + i * from_row);
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
        *reinterpret_cast<Loose*>(to + i * to_row) =
            __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *reinterpret_cast<Loose*>(to + (i + 4) * to_row) =
            __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#else
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) to[j * to_row + i] = from[i * from_row + j];
#endif
}

// e^x for −88 < x < 0: 2^n · e^rest with |rest| ≤ ½ ln 2, the rest by its Taylor series to the seventh power.
static INLINE Vector exponential(Vector x) {
    const Vector turns = x * all(1.44269504f);
    const Mask n = __builtin_convertvector(turns - all(0.5f), Mask);  // rounds to nearest: x is negative
    const Vector whole = __builtin_convertvector(n, Vector);
    const Vector rest = (x - whole * all(0.693359375f)) - whole * all(-2.12194440e-4f);  // ln 2 in two parts
    Vector series = all(1.0f / 5040);
    for (float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
        series = series * rest + all(factor);
    }
    const Mask power = (n + 127) << 23;
    return series * (Vector)power;
}

// Within a few units of the last place: the odd series near zero, (1 − e^−2|x|) / (1 + e^−2|x|) elsewhere.
static INLINE Vector hyperbolic_tangent(Vector x) {
    const Vector zero{}, size = x < zero ? -x : x;
    const Vector decay = exponential(all(-2.0f) * smaller(size, all(20.0f)));
    const Vector far = (all(1.0f) - decay) / (all(1.0f) + decay);
    const Vector square = x * x;
    Vector series = all(21844.0f / 6081075);
    for (float factor : {-1382.0f / 155925, 62.0f / 2835, -17.0f / 315, 2.0f / 15, -1.0f / 3}) {
        series = series * square + all(factor);
    }
    const Vector near = x + x * square * series;
    const Vector signed_far = x < zero ? -far : far;
    return size < all(0.35f) ? near : (size == size ? signed_far : x);  // what is no number stays none
}
