"""The JavaScript functions that exported operations call: a file gets those it needs."""

from collections.abc import Iterator

DECODED = """
// The weights: little-endian float32 in base 64.
function decoded(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 4 }, (_, index) => view.getFloat32(4 * index, true));
}
"""

FLAT = """
// The entries of an array, which may be nested; a single number is an array of one.
function flat(value, size, name) {
    const entries = ArrayBuffer.isView(value) ? value : Array.isArray(value) ? value.flat(Infinity) : [value];
    if (entries.length !== size) throw new RangeError(`${name} must have ${size} entries; got ${entries.length}.`);
    return entries;
}
"""

NUMBERS = """
// Float32 numbers, all finite.
function numbers(value, size, name) {
    const found = Float32Array.from(flat(value, size, name), Number);
    const wrong = found.findIndex((number) => !Number.isFinite(number));
    if (wrong >= 0) throw new RangeError(`${name} must be finite; entry ${wrong} is ${found[wrong]}.`);
    return found;
}
"""

BYTES = """
// Bytes of an image: whole numbers from 0 to 255.
function bytes(value, size, name) {
    const entries = flat(value, size, name);
    if (entries instanceof Uint8Array || entries instanceof Uint8ClampedArray) return entries;
    const found = Uint8Array.from(entries);
    const wrong = found.findIndex((byte, index) => byte !== Number(entries[index]));
    if (wrong >= 0) throw new RangeError(`${name} must hold bytes; entry ${wrong} is ${entries[wrong]}.`);
    return found;
}
"""

CATEGORIES = """
// A one-hot vector for each category, one after the other; ranges are [first, count].
function categories(value, ranges, name) {
    const entries = flat(value, ranges.length, name);
    const found = new Float32Array(ranges.reduce((sum, range) => sum + range[1], 0));
    let start = 0;
    ranges.forEach(([first, count], entry) => {
        const category = Number(entries[entry]) - first;
        if (!Number.isInteger(category) || category < 0 || category >= count)
            throw new RangeError(`${name} must be from ${first} to ${first + count - 1}; got ${entries[entry]}.`);
        found[start + category] = 1;
        start += count;
    });
    return found;
}
"""

PIXELS = """
// Puts the channels of a frame first, and maps its bytes to [-0.5, 0.5].
function pixels(frame, start, frames, channels, height, width, perFrame, perChannel, perRow, perColumn, work, place) {
    for (let f = 0; f < frames; f++)
        for (let c = 0; c < channels; c++)
            for (let row = 0; row < height; row++)
                for (let column = 0; column < width; column++)
                    work[place++] =
                        frame[start + f * perFrame + c * perChannel + row * perRow + column * perColumn] / 255 - 0.5;
}
"""

NORMALISE = """
// Normalises the numbers of each time step in place.
function normalise(mean, scale, clip, steps, work, place) {
    for (let step = 0; step < steps; step++)
        for (let i = 0; i < mean.length; i++, place++)
            work[place] = Math.min(Math.max((work[place] - mean[i]) * scale[i], -clip), clip);
}
"""

LINEAR = """
// Multiplies by a matrix that has a row for each output; four sums in float64 at a time are faster than one.
function linear(weight, bias, inputs, outputs, work, x, y) {
    for (let j = 0; j < outputs; j++, weight += inputs) {
        let i = 0, a = weights[bias + j], b = 0, c = 0, d = 0;
        for (; i + 3 < inputs; i += 4) {
            a += weights[weight + i] * work[x + i];
            b += weights[weight + i + 1] * work[x + i + 1];
            c += weights[weight + i + 2] * work[x + i + 2];
            d += weights[weight + i + 3] * work[x + i + 3];
        }
        for (; i < inputs; i++) a += weights[weight + i] * work[x + i];
        work[y + j] = a + b + (c + d);
    }
}
"""

CONVOLVE = """
// Convolves (channels, height, width): adds each entry of the kernels wherever it falls inside, for beyond are zeros.
function convolve(weight, bias, channels, height, width, outputs, rows, columns, high, wide, stride, padding,
                  work, x, y) {
    const first = (entry) => Math.max(0, Math.ceil((padding - entry) / stride));
    const end = (entry, size, most) => Math.min(most, Math.ceil((size + padding - entry) / stride));
    for (let o = 0; o < outputs; o++, y += rows * columns) {
        work.fill(weights[bias + o], y, y + rows * columns);
        for (let c = 0; c < channels; c++)
            for (let i = 0; i < high; i++)
                for (let j = 0; j < wide; j++) {
                    const factor = weights[weight++];
                    const lastRow = end(i, height, rows), begin = first(j), last = end(j, width, columns);
                    for (let row = first(i); row < lastRow; row++) {
                        const from = x + (c * height + row * stride + i - padding) * width + j - padding;
                        const to = y + row * columns;
                        for (let column = begin; column < last; column++)
                            work[to + column] += factor * work[from + column * stride];
                    }
                }
    }
}
"""

LAYER_NORM = """
// Normalises by mean and variance of the numbers themselves.
function layerNorm(weight, bias, epsilon, size, work, x, y) {
    let mean = 0;
    let variance = 0;
    for (let i = 0; i < size; i++) mean += work[x + i] / size;
    for (let i = 0; i < size; i++) variance += (work[x + i] - mean) ** 2 / size;
    const scale = 1 / Math.sqrt(variance + epsilon);
    for (let i = 0; i < size; i++)
        work[y + i] = (work[x + i] - mean) * scale * weights[weight + i] + weights[bias + i];
}
"""

RELU = """
// Replaces negative numbers by 0.
function relu(size, work, place) {
    for (let i = place; i < place + size; i++) if (work[i] < 0) work[i] = 0;
}
"""

TANH = """
function tanh(size, work, place) {
    for (let i = place; i < place + size; i++) work[i] = Math.tanh(work[i]);
}
"""

UNSCALED = """
// Maps [-1, 1] to the environment's own units, never out of bounds.
function unscaled(action, source, centre, half, low, high, work, place) {
    for (let i = 0; i < action.length; i++)
        action[i] = Math.min(Math.max(centre[i] + half[i] * work[place + source[i]], low[i]), high[i]);
    return action;
}
"""

# By the name under which they are called.
FUNCTIONS = {
    "numbers": NUMBERS,
    "bytes": BYTES,
    "categories": CATEGORIES,
    "pixels": PIXELS,
    "normalise": NORMALISE,
    "linear": LINEAR,
    "convolve": CONVOLVE,
    "layerNorm": LAYER_NORM,
    "relu": RELU,
    "tanh": TANH,
    "unscaled": UNSCALED,
}


def functions(body: str) -> Iterator[str]:
    """Yields the functions that this body calls, and those that these call."""
    needed = [text for called, text in FUNCTIONS.items() if f"{called}(" in body]
    for text in (DECODED, FLAT, *needed):
        yield text.strip()
        yield ""
