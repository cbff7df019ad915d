"""The C text that exported files share: what they declare, and the functions that operations call."""

from collections.abc import Iterator
from string import Template

# What a user reads first.
DECLARATIONS = Template("""
/* $name: a policy for $env, trained for $step steps. Written by $made_by.
 *
 *   ${name}_state state;                        what the policy remembers; one for each robot
 *   ${name}_observation observation = {...};    one time step, as the environment returns it
 *   $kind action[${large}_ACTION_SIZE];
 *   ${name}_reset(&state);                      at the beginning of each episode
 *   ${name}_act(&state, &observation, action);  at each time step
 *
 * Compile it as C99; it needs no library. In other files, C++ too, include it after #define ${large}_DECLARATIONS.
 */
#ifndef ${large}_POLICY
#define ${large}_POLICY

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ${large}_ACTION_SIZE $size

typedef struct {
$fields
} ${name}_observation;

typedef struct {
$state
} ${name}_state;

/* Begins an episode: what was observed before is forgotten. */
void ${name}_reset(${name}_state *state);

/* Computes the action, shape $shape, in the environment's own units. Returns 0; or n where field n of the observation,
 * counted from 1, holds a number that is not finite or a category that is none: then nothing is changed. */
int ${name}_act(${name}_state *state, const ${name}_observation *observation, $kind *action);

/* Returns where the policy comes from, and names, shapes and bounds, as JSON. */
const char *${name}_about(void);

#ifdef __cplusplus
}
#endif

#endif
""")

FINITE = """
/* Whether all numbers are finite. */
static int NAME_finite(const float *x, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!(x[i] >= -FLT_MAX && x[i] <= FLT_MAX)) return 0;
    return 1;
}
"""

COPY = """
/* Copies numbers; from a higher place to a lower one they may overlap. */
static void NAME_copy(const float *x, size_t size, float *y)
{
    for (size_t i = 0; i < size; i++) y[i] = x[i];
}
"""

ONE_HOT = """
/* Makes 1 of the category, and 0 of all others. */
static void NAME_one_hot(size_t category, size_t count, float *y)
{
    for (size_t i = 0; i < count; i++) y[i] = i == category ? 1.0f : 0.0f;
}
"""

PIXELS = """
/* Puts the channels of a frame first, and maps its bytes to [-0.5, 0.5]. */
static void NAME_pixels(const uint8_t *frame, size_t frames, size_t channels, size_t height, size_t width,
                        size_t per_frame, size_t per_channel, size_t per_row, size_t per_column, float *y)
{
    for (size_t f = 0; f < frames; f++)
        for (size_t c = 0; c < channels; c++)
            for (size_t row = 0; row < height; row++)
                for (size_t column = 0; column < width; column++)
                    *y++ = (float)frame[f * per_frame + c * per_channel + row * per_row + column * per_column] / 255.0f
                        - 0.5f;
}
"""

NORMALISE = """
/* Normalises numbers in place. The mean is in two parts: one float would lose what is small beside a large mean. */
static void NAME_normalise(const float *mean, const float *rest, const float *scale, float clip, size_t steps,
                           size_t size, float *x)
{
    for (size_t step = 0; step < steps; step++, x += size)
        for (size_t i = 0; i < size; i++) {
            float centred = x[i] - mean[i];
            float scaled = (centred - rest[i]) * scale[i];
            x[i] = scaled < -clip ? -clip : scaled > clip ? clip : scaled;
        }
}
"""

LINEAR = """
/* Multiplies by a matrix that has a row for each input: the inner loop has no sum, so that compilers vectorise it. */
static void NAME_linear(const float *restrict weight, const float *restrict bias, size_t inputs, size_t outputs,
                        const float *restrict x, float *restrict y)
{
    for (size_t j = 0; j < outputs; j++) y[j] = bias[j];
    for (size_t i = 0; i < inputs; i++) {
        float factor = x[i];
        const float *restrict row = weight + i * outputs;
        if (factor == 0.0f) continue; /* about half of what a ReLU passes on */
        for (size_t j = 0; j < outputs; j++) y[j] += factor * row[j];
    }
}
"""

CONVOLVE = """
/* The first place of a kernel's entry that is not before the border, and the end of those that are not behind it. */
static size_t NAME_first(size_t entry, size_t stride, size_t padding)
{
    return entry < padding ? (padding - entry + stride - 1) / stride : 0;
}

static size_t NAME_end(size_t entry, size_t stride, size_t padding, size_t size, size_t most)
{
    size_t end = entry < size + padding ? (size + padding - entry + stride - 1) / stride : 0;
    return end < most ? end : most;
}

/* Convolves (channels, height, width): adds each entry of the kernels wherever it falls inside; beyond are zeros. */
static void NAME_convolve(const float *restrict weight, const float *bias, size_t channels, size_t height, size_t width,
                          size_t outputs, size_t rows, size_t columns, size_t high, size_t wide, size_t stride,
                          size_t padding, const float *restrict x, float *restrict y)
{
    for (size_t o = 0; o < outputs; o++, y += rows * columns) {
        for (size_t i = 0; i < rows * columns; i++) y[i] = bias[o];
        for (size_t entry = 0; entry < channels * high * wide; entry++) {
            const float *plane = x + entry / (high * wide) * height * width;
            float factor = *weight++;
            size_t i = entry / wide % high, j = entry % wide;
            size_t last_row = NAME_end(i, stride, padding, height, rows);
            size_t first = NAME_first(j, stride, padding), end = NAME_end(j, stride, padding, width, columns);
            for (size_t row = NAME_first(i, stride, padding); row < last_row; row++) {
                const float *from = plane + (row * stride + i - padding) * width;
                float *to = y + row * columns;
                for (size_t column = first; column < end; column++)
                    to[column] += factor * from[column * stride + j - padding];
            }
        }
    }
}
"""

LAYER_NORM = """
/* The square root of a positive number by Newton's method, from above: it stops where it no longer falls. */
static double NAME_sqrt(double x)
{
    double root = x > 1.0 ? x : 1.0, last;
    do {
        last = root;
        root = 0.5 * (last + x / last);
    } while (root < last);
    return last;
}

/* Normalises by mean and variance of the numbers themselves. */
static void NAME_layer_norm(const float *weight, const float *bias, double epsilon, size_t size, const float *x,
                            float *y)
{
    double mean = 0.0, variance = 0.0, scale;
    for (size_t i = 0; i < size; i++) mean += (double)x[i];
    mean /= (double)size;
    for (size_t i = 0; i < size; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean);
    scale = 1.0 / NAME_sqrt(variance / (double)size + epsilon);
    for (size_t i = 0; i < size; i++) y[i] = (float)(((double)x[i] - mean) * scale) * weight[i] + bias[i];
}
"""

RELU = """
/* Replaces negative numbers by 0. */
static void NAME_relu(size_t size, float *x)
{
    for (size_t i = 0; i < size; i++)
        if (x[i] < 0.0f) x[i] = 0.0f;
}
"""

TANH = """
/* tanh by (1 - e) / (1 + e) with e = exp(-2 |x|): the series of exp(-2 |x| / 1024), squared ten times. It is as good as
 * a float can be, and the same on every system: no tanhf, and nothing to link. */
static float NAME_tanh(float x)
{
    double size = x < 0.0f ? -(double)x : (double)x, tanh;
    if (size < 1e-3) {
        tanh = size - size * size * size / 3.0;
    } else if (size > 20.0) {
        tanh = 1.0;
    } else {
        double t = -size / 512.0;
        double e = 1.0 + t * (1.0 + t / 2.0 * (1.0 + t / 3.0 * (1.0 + t / 4.0 * (1.0 + t / 5.0 * (1.0 + t / 6.0)))));
        for (int i = 0; i < 10; i++) e *= e;
        tanh = (1.0 - e) / (1.0 + e);
    }
    return (float)(x < 0.0f ? -tanh : tanh);
}

static void NAME_tanh_all(size_t size, float *x)
{
    for (size_t i = 0; i < size; i++) x[i] = NAME_tanh(x[i]);
}
"""

# By the name under which they are called; each text has all that it calls itself.
FUNCTIONS = {
    "finite": FINITE,
    "copy": COPY,
    "one_hot": ONE_HOT,
    "pixels": PIXELS,
    "normalise": NORMALISE,
    "linear": LINEAR,
    "convolve": CONVOLVE,
    "layer_norm": LAYER_NORM,
    "relu": RELU,
    "tanh_all": TANH,
}


def functions(name: str, body: str) -> Iterator[str]:
    """Yields the functions that this body calls: a compiler warns of a static function that nothing calls."""
    for called, text in FUNCTIONS.items():
        if f" {name}_{called}(" in body or f"!{name}_{called}(" in body:
            yield text.strip().replace("NAME", name)
            yield ""
