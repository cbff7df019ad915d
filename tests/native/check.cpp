// Checks the library without Python: every kernel against a simple reference in double precision, and against itself
// with other numbers of threads, after a fork, and created and freed many times.
//
// Prints a line for each check that fails, then exits with 1. It is made to run under sanitizers and valgrind
// (tests/test_native_library.py), so every array it hands out ends where its memory ends.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "interface.h"
#include "kernels.h"
#include "processor.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER  // Clang
#endif
#elif defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER  // GCC
#endif

namespace td3 {
extern const Kernels wide_kernels;
}

namespace {

// Relative to the largest number of the same kind. A gradient consists of some hundred sums of some hundred products in
// float32, a network's output of a few such sums. A step of Adam or of a target has only a few roundings, because the
// reference starts from the same floats. The largest differences measured are a sixth of these.
constexpr double kGradientTolerance = 5e-5, kForwardTolerance = 5e-6, kStepTolerance = 5e-7;

// Relative to the sum of absolute values. Two orders of summation can disagree on the sign of a sum this small: then
// the ReLU is open in one and closed in the other, and their gradients cannot be compared.
constexpr double kKinkMargin = 1e-6;

int passed = 0, failed = 0;

__attribute__((format(printf, 2, 3))) void check(bool holds, const char* format, ...) {
    (holds ? passed : failed) += 1;
    if (holds) return;
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
}

// ---- the inputs of an update ----

// Floats at an address that is not aligned for vectors, ending where their memory ends.
class Floats {
  public:
    explicit Floats(size_t count = 0) : memory_(count + 1) {}
    size_t size() const { return memory_.size() - 1; }
    float* data() { return memory_.data() + 1; }
    const float* data() const { return memory_.data() + 1; }
    float* begin() { return data(); }
    float* end() { return data() + size(); }
    const float* begin() const { return data(); }
    const float* end() const { return data() + size(); }

  private:
    std::vector<float> memory_;
};

struct Sizes {
    int observations, actions;
    std::vector<int64_t> hidden;
    int batch;

    Td3Shape shape() const { return {observations, actions, static_cast<int64_t>(hidden.size()) + 1, hidden.data()}; }
    std::vector<int> widths(int inputs, int outputs) const {
        std::vector<int> all{inputs};
        all.insert(all.end(), hidden.begin(), hidden.end());
        all.push_back(outputs);
        return all;
    }
    std::vector<int> actor_widths() const { return widths(observations, actions); }
    std::vector<int> critic_widths() const { return widths(observations + actions, 1); }
    size_t output_count() const { return static_cast<size_t>(batch) * (actions + 5); }

    std::string name() const {
        std::string text = std::to_string(observations) + "+" + std::to_string(actions) + " (";
        for (int64_t units : hidden) text += std::to_string(units) + ",";
        text.back() = ')';
        return text + " x" + std::to_string(batch);
    }
};

struct Tensor {
    Floats value, mean, square, target;
    float step = 0;
};

using Tensors = std::vector<Tensor>;  // weight, bias, weight, bias …

struct State {
    Tensors actor, critics;
};

struct Sample {
    Floats observation, action, reward, next_observation;
    std::vector<uint8_t> terminated;
    std::vector<int64_t> indices;
    Floats noise;
    Floats discount = Floats(0);  // of each row; empty: gamma for all

    Td3Memory memory() const {
        return {observation.data(),      action.data(),     reward.data(),
                next_observation.data(), terminated.data(), discount.size() ? discount.data() : nullptr};
    }
};

// Gives the same numbers on every system, unlike the standard library's distributions.
class Rng {
  public:
    explicit Rng(uint64_t seed) : bits_(seed) {}
    float between(float low, float high) { return low + (high - low) * static_cast<float>(bits_() >> 40) / (1 << 24); }
    float normal() {
        float sum = -6;
        for (int i = 0; i < 12; ++i) sum += between(0, 1);
        return sum;
    }
    int64_t below(size_t count) { return static_cast<int64_t>(bits_() % count); }

  private:
    std::mt19937_64 bits_;
};

void fill_normal(Floats& numbers, float scale, Rng& rng) {
    for (float& number : numbers) number = scale * rng.normal();
}

void fill_between(Floats& numbers, float low, float high, Rng& rng) {
    for (float& number : numbers) number = rng.between(low, high);
}

// Adam's state is that of a few updates, or empty if `fresh`.
Tensors random_tensors(const std::vector<int>& widths, int copies, bool fresh, Rng& rng) {
    Tensors tensors;
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
        const float reach = 1.0f / std::sqrt(static_cast<float>(widths[i]));
        for (const bool bias : {false, true}) {
            const size_t count = static_cast<size_t>(copies) * widths[i + 1] * (bias ? 1 : widths[i]);
            Tensor tensor{Floats(count), Floats(count), Floats(count), Floats(count)};
            // Positive biases keep the ReLUs of narrow layers from all being closed.
            fill_between(tensor.value, bias ? 0 : -reach, reach, rng);
            fill_normal(tensor.target, 0.1f * reach, rng);
            for (size_t n = 0; n < count; ++n) tensor.target.data()[n] += tensor.value.data()[n];
            if (!fresh) {
                fill_normal(tensor.mean, 1e-4f, rng);
                fill_between(tensor.square, 1e-9f, 1e-8f, rng);
                tensor.step = 7;
            }
            tensors.push_back(std::move(tensor));
        }
    }
    return tensors;
}

State random_state(const Sizes& sizes, bool fresh, Rng& rng) {
    return {random_tensors(sizes.actor_widths(), 1, fresh, rng), random_tensors(sizes.critic_widths(), 2, fresh, rng)};
}

Sample random_sample(const Sizes& sizes, Rng& rng) {
    const size_t rows = 2 * static_cast<size_t>(sizes.batch) + 3, observations = sizes.observations;
    Sample sample{Floats(rows * observations), Floats(rows * sizes.actions), Floats(rows),
                  Floats(rows * observations), {}, {}, Floats(static_cast<size_t>(sizes.batch) * sizes.actions)};
    fill_normal(sample.observation, 1, rng);
    fill_normal(sample.next_observation, 1, rng);
    fill_between(sample.action, -1, 1, rng);
    fill_normal(sample.reward, 1, rng);
    fill_normal(sample.noise, 1, rng);
    for (size_t row = 0; row < rows; ++row) sample.terminated.push_back(row % 3 == 0);
    for (int i = 0; i < sizes.batch; ++i) sample.indices.push_back(rng.below(rows));
    sample.indices.back() = static_cast<int64_t>(rows) - 1;  // the last row of the arrays
    sample.indices.front() = 0;
    return sample;
}

// gamma, tau, noise, noise clip, learning rates, and the floor of the loss: none
constexpr Td3Settings kSettings = {0.98, 0.005, 0.2, 0.5, 3e-4, 1e-3, 0};
constexpr double kFloor = 0.75;  // with prioritised sampling: some errors are below, some above

Td3Settings settings_of(double floor) {
    Td3Settings settings = kSettings;
    settings.loss_floor = floor;
    return settings;
}

// ---- the reference, in double precision ----

using Numbers = std::vector<double>;
using Arrays = std::vector<Numbers>;  // in the order of the tensors: weight, bias, weight, bias …

struct Layer {
    int inputs, outputs;
    Numbers weight, bias;  // the weight (outputs, inputs), in the actor and the critics
};

using Network = std::vector<Layer>;

Arrays arrays_of(const Tensors& tensors, Floats Tensor::*part) {
    Arrays arrays;
    for (const Tensor& tensor : tensors) arrays.emplace_back((tensor.*part).begin(), (tensor.*part).end());
    return arrays;
}

Network actor_of(const Sizes& sizes, const Arrays& arrays) {
    Network network;
    const auto widths = sizes.actor_widths();
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
        network.push_back({widths[i], widths[i + 1], arrays[2 * i], arrays[2 * i + 1]});
    }
    return network;
}

// Both critics share a tensor, their weights (inputs, outputs).
size_t critic_index(const Layer& layer, int which, int output, int input) {
    return (static_cast<size_t>(which) * layer.inputs + input) * layer.outputs + output;
}

Network critic_of(const Sizes& sizes, const Arrays& arrays, int which) {
    Network network;
    const auto widths = sizes.critic_widths();
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
        Layer layer{widths[i], widths[i + 1], {}, {}};
        for (int output = 0; output < layer.outputs; ++output) {
            for (int input = 0; input < layer.inputs; ++input) {
                layer.weight.push_back(arrays[2 * i][critic_index(layer, which, output, input)]);
            }
            layer.bias.push_back(arrays[2 * i + 1][static_cast<size_t>(which) * layer.outputs + output]);
        }
        network.push_back(std::move(layer));
    }
    return network;
}

Arrays arrays_of_actor(const Network& actor) {
    Arrays arrays;
    for (const Layer& layer : actor) arrays.push_back(layer.weight), arrays.push_back(layer.bias);
    return arrays;
}

Arrays arrays_of_critics(const Network (&critics)[2]) {
    Arrays arrays;
    for (size_t i = 0; i < critics[0].size(); ++i) {
        Numbers weight(2 * critics[0][i].weight.size()), bias;
        for (int which = 0; which < 2; ++which) {
            const Layer& layer = critics[which][i];
            for (int output = 0; output < layer.outputs; ++output) {
                for (int input = 0; input < layer.inputs; ++input) {
                    weight[critic_index(layer, which, output, input)] =
                        layer.weight[static_cast<size_t>(output) * layer.inputs + input];
                }
            }
            bias.insert(bias.end(), layer.bias.begin(), layer.bias.end());
        }
        arrays.push_back(std::move(weight)), arrays.push_back(std::move(bias));
    }
    return arrays;
}

Network zeros_like(Network network) {
    for (Layer& layer : network) {
        std::fill(layer.weight.begin(), layer.weight.end(), 0.0);
        std::fill(layer.bias.begin(), layer.bias.end(), 0.0);
    }
    return network;
}

// One row's forward pass.
struct Pass {
    Arrays inputs;  // of each layer
    Numbers output;
    double kink_distance = 1;  // the smallest hidden sum, relative to the sum of absolute values
};

Pass forward(const Network& network, Numbers x) {
    Pass pass;
    for (const Layer& layer : network) {
        const bool hidden = &layer != &network.back();
        Numbers y = layer.bias;
        for (int output = 0; output < layer.outputs; ++output) {
            const double* weight = layer.weight.data() + static_cast<size_t>(output) * layer.inputs;
            double sum = y[output], sizes = std::abs(sum);
            for (int input = 0; input < layer.inputs; ++input) {
                const double product = weight[input] * x[input];
                sum += product, sizes += std::abs(product);
            }
            if (hidden && sizes > 0) pass.kink_distance = std::min(pass.kink_distance, std::abs(sum) / sizes);
            y[output] = hidden ? std::max(sum, 0.0) : sum;
        }
        pass.inputs.push_back(std::exchange(x, std::move(y)));
    }
    pass.output = x;
    return pass;
}

// Adds this row's part to the gradient unless it is nullptr; returns the gradient with respect to the input row.
Numbers backward(const Network& network, const Pass& pass, Numbers output_gradient, Network* gradient) {
    for (size_t i = network.size(); i-- > 0;) {
        const Layer& layer = network[i];
        const Numbers& x = pass.inputs[i];
        Numbers before(layer.inputs);
        for (int output = 0; output < layer.outputs; ++output) {
            if (output_gradient[output] == 0) continue;
            const size_t line = static_cast<size_t>(output) * layer.inputs;
            for (int input = 0; input < layer.inputs; ++input) {
                before[input] += output_gradient[output] * layer.weight[line + input];
                if (gradient) (*gradient)[i].weight[line + input] += output_gradient[output] * x[input];
            }
            if (gradient) (*gradient)[i].bias[output] += output_gradient[output];
        }
        if (i > 0) {  // x is the output of a ReLU
            for (int input = 0; input < layer.inputs; ++input) before[input] *= x[input] > 0;
        }
        output_gradient = std::move(before);
    }
    return output_gradient;
}

struct Adam {
    double lr, step;
    double stepped(double value, double mean, double square) const {
        const double unbiased_mean = mean / (1 - std::pow(0.9, step));
        const double unbiased_square = square / (1 - std::pow(0.999, step));
        return value - lr * unbiased_mean / (std::sqrt(unbiased_square) + 1e-8);
    }
};

// Adam's moments after a gradient.
struct Moments {
    Arrays mean, square;
    Moments() = default;
    Moments(const Tensors& before, const Arrays& gradient)
        : mean(arrays_of(before, &Tensor::mean)), square(arrays_of(before, &Tensor::square)) {
        for (size_t i = 0; i < gradient.size(); ++i) {
            for (size_t n = 0; n < gradient[i].size(); ++n) {
                const double g = gradient[i][n];
                mean[i][n] = 0.9 * mean[i][n] + 0.1 * g;
                square[i][n] = 0.999 * square[i][n] + 0.001 * g * g;
            }
        }
    }
};

struct Expected {
    Moments actor, critics;
    Numbers next_action, next_q[2], target, q[2];
    double means[5] = {0, std::nan(""), 0, 0, 0};
    std::vector<int> near_kink;  // rows whose gradient cannot be compared
};

Numbers row_of(const Floats& matrix, int64_t row, int columns) {
    return Numbers(matrix.data() + row * columns, matrix.data() + (row + 1) * columns);
}

Numbers concatenated(Numbers x, const Numbers& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
}

Numbers tanh_of(Numbers x) {
    for (double& number : x) number = std::tanh(number);
    return x;
}

Expected reference_update(const Sizes& sizes, const State& state, const Sample& sample, bool delayed, double floor) {
    Expected expected;
    const int batch = sizes.batch, actions = sizes.actions;
    Arrays critic_values = arrays_of(state.critics, &Tensor::value);
    const Arrays critic_targets = arrays_of(state.critics, &Tensor::target);
    const Network critics[2] = {critic_of(sizes, critic_values, 0), critic_of(sizes, critic_values, 1)};
    const Network targets[2] = {critic_of(sizes, critic_targets, 0), critic_of(sizes, critic_targets, 1)};
    const Network actor = actor_of(sizes, arrays_of(state.actor, &Tensor::value));
    const Network actor_target = actor_of(sizes, arrays_of(state.actor, &Tensor::target));

    Network gradients[2] = {zeros_like(critics[0]), zeros_like(critics[1])};
    Numbers kink_distance(batch, 1.0);
    for (int i = 0; i < batch; ++i) {
        const int64_t row = sample.indices[i];
        const Numbers next = row_of(sample.next_observation, row, sizes.observations);
        Numbers next_action = tanh_of(forward(actor_target, next).output);
        for (int j = 0; j < actions; ++j) {
            const double noise = sample.noise.data()[i * actions + j] * kSettings.target_noise;
            next_action[j] += std::clamp(noise, -kSettings.noise_clip, kSettings.noise_clip);
            next_action[j] = std::clamp(next_action[j], -1.0, 1.0);
        }
        expected.next_action = concatenated(std::move(expected.next_action), next_action);
        for (int which = 0; which < 2; ++which) {
            expected.next_q[which].push_back(forward(targets[which], concatenated(next, next_action)).output[0]);
        }
        const double future = std::min(expected.next_q[0][i], expected.next_q[1][i]);
        const double reward = sample.reward.data()[row];
        const double discount = sample.discount.size() ? sample.discount.data()[row] : kSettings.gamma;
        const double target = reward + (sample.terminated[row] ? 0 : discount * future);
        expected.target.push_back(target);
        expected.means[4] += target / batch;

        const Numbers known = concatenated(row_of(sample.observation, row, sizes.observations),
                                     row_of(sample.action, row, actions));
        for (int which = 0; which < 2; ++which) {
            const Pass pass = forward(critics[which], known);
            const double q = pass.output[0];
            expected.q[which].push_back(q);
            const double error = q - target, size = std::abs(error);
            double loss = error * error, slope = 2 * error;
            if (floor > 0) {
                loss = size < floor ? 0.5 * error * error : floor * size;
                slope = std::clamp(error, -floor, floor);
                kink_distance[i] = std::min(kink_distance[i], std::abs(size - floor));  // there the loss jumps
            }
            expected.means[0] += loss / batch;
            expected.means[2 + which] += q / batch;
            backward(critics[which], pass, {slope / batch}, &gradients[which]);
            kink_distance[i] = std::min(kink_distance[i], pass.kink_distance);
        }
    }
    expected.critics = Moments(state.critics, arrays_of_critics(gradients));

    Network actor_gradient = zeros_like(actor);
    if (delayed) {
        for (size_t i = 0; i < critic_values.size(); ++i) {
            const Adam adam{kSettings.critic_lr, state.critics[i].step + 1.0};
            for (size_t n = 0; n < critic_values[i].size(); ++n) {
                critic_values[i][n] =
                    adam.stepped(critic_values[i][n], expected.critics.mean[i][n], expected.critics.square[i][n]);
            }
        }
        const Network critic = critic_of(sizes, critic_values, 0);
        expected.means[1] = 0;
        for (int i = 0; i < batch; ++i) {
            const Numbers observation = row_of(sample.observation, sample.indices[i], sizes.observations);
            const Pass actor_pass = forward(actor, observation);
            const Numbers action = tanh_of(actor_pass.output);
            const Pass critic_pass = forward(critic, concatenated(observation, action));
            expected.means[1] -= critic_pass.output[0] / batch;
            const Numbers into = backward(critic, critic_pass, {-1.0 / batch}, nullptr);
            Numbers output_gradient(into.end() - actions, into.end());
            for (int j = 0; j < actions; ++j) output_gradient[j] *= 1 - action[j] * action[j];
            backward(actor, actor_pass, output_gradient, &actor_gradient);
            kink_distance[i] = std::min({kink_distance[i], actor_pass.kink_distance, critic_pass.kink_distance});
        }
        expected.actor = Moments(state.actor, arrays_of_actor(actor_gradient));
    }
    for (int i = 0; i < batch; ++i) {
        if (kink_distance[i] < kKinkMargin) expected.near_kink.push_back(i);
    }
    return expected;
}

// ---- engines ----

// Calls the C interface.
class Interface final : public td3::Engine {
  public:
    Interface(const std::string& kernels, const Sizes& sizes, int64_t rows, int64_t threads) {
        const Td3Shape shape = sizes.shape();
        engine_ = td3_new(kernels.c_str(), &shape, rows, threads);
        check(engine_ != nullptr, "%s: no engine for %s", kernels.c_str(), sizes.name().c_str());
        if (!engine_) std::exit(1);
    }
    ~Interface() override { td3_free(engine_); }
    void bind(const Td3Tensor* actor, const Td3Tensor* critics) override { td3_bind(engine_, actor, critics); }
    void refresh() override { td3_refresh(engine_); }
    void update(const Td3Settings& settings, const Td3Memory& memory, const int64_t* indices, const float* noise,
                bool delayed, double* means, float* outputs) override {
        td3_update(engine_, &settings, &memory, indices, noise, delayed, means, outputs);
    }
    void act(const float* observations, int64_t rows, float* actions) override {
        if (!td3_act(engine_, observations, rows, actions)) std::abort();  // memory suffices here
    }

  private:
    Td3Engine* engine_;
};

// The wide kernels, which the interface does not have: does what interface.cpp does.
class Wide final : public td3::Engine {
  public:
    Wide(const Sizes& sizes, int64_t rows, int threads)
        : engine_(td3::wide_kernels.make(sizes.shape(), rows, threads)) {}
    void bind(const Td3Tensor* actor, const Td3Tensor* critics) override { engine_->bind(actor, critics); }
    void refresh() override { engine_->refresh(); }
    void update(const Td3Settings& settings, const Td3Memory& memory, const int64_t* indices, const float* noise,
                bool delayed, double* means, float* outputs) override {
        const td3::FlushDenormals flush;
        engine_->update(settings, memory, indices, noise, delayed, means, outputs);
    }
    void act(const float* observations, int64_t rows, float* actions) override {
        const td3::FlushDenormals flush;
        engine_->act(observations, rows, actions);
    }

  private:
    std::unique_ptr<td3::Engine> engine_;
};

std::vector<std::string> all_kernels() {
    std::vector<std::string> names;
    while (const char* name = td3_kernels(static_cast<int64_t>(names.size()))) names.push_back(name);
    if (td3::wide_kernels.supported()) names.push_back(td3::wide_kernels.name);
    return names;
}

std::unique_ptr<td3::Engine> make(const std::string& kernels, const Sizes& sizes, int64_t rows, int threads) {
    if (kernels == td3::wide_kernels.name) return std::make_unique<Wide>(sizes, rows, threads);
    return std::make_unique<Interface>(kernels, sizes, rows, threads);
}

void bind(td3::Engine& engine, State& state) {
    std::vector<Td3Tensor> bound[2];
    for (Tensors* tensors : {&state.actor, &state.critics}) {
        for (Tensor& tensor : *tensors) {
            bound[tensors == &state.critics].push_back({tensor.value.data(), tensor.mean.data(), tensor.square.data(),
                                                        &tensor.step, tensor.target.data()});
        }
    }
    engine.bind(bound[0].data(), bound[1].data());
    engine.refresh();
}

// An engine that only acts gets the actor's values alone.
void bind_actor(td3::Engine& engine, State& state) {
    std::vector<Td3Tensor> bound;
    for (Tensor& tensor : state.actor) bound.push_back({tensor.value.data(), nullptr, nullptr, nullptr, nullptr});
    engine.bind(bound.data(), nullptr);
    engine.refresh();
}

// What updates returned and the state they left.
struct Outcome {
    State state;
    std::vector<double> means;
    std::vector<float> outputs;
};

struct Options {
    int threads;
    bool outputs = true;
    bool refreshed = false;  // before every update
};

void update(td3::Engine& engine, const Sizes& sizes, const Sample& sample, bool delayed, bool with_outputs,
            Outcome& outcome, double floor = 0) {
    double means[5];
    Floats outputs(sizes.output_count());
    engine.update(settings_of(floor), sample.memory(), sample.indices.data(), sample.noise.data(), delayed, means,
                  with_outputs ? outputs.data() : nullptr);
    outcome.means.insert(outcome.means.end(), means, means + 5);
    if (with_outputs) outcome.outputs.insert(outcome.outputs.end(), outputs.begin(), outputs.end());
}

// Every second update is delayed.
Outcome updated(const std::string& kernels, const Sizes& sizes, const State& state, const Sample& sample,
                int updates, Options options) {
    Outcome outcome{state, {}, {}};
    const auto engine = make(kernels, sizes, sizes.batch, options.threads);
    bind(*engine, outcome.state);
    for (int i = 1; i <= updates; ++i) {
        if (options.refreshed) engine->refresh();
        update(*engine, sizes, sample, i % 2 == 0, options.outputs, outcome);
    }
    return outcome;
}

// ---- comparisons ----

double largest(const Numbers& numbers) {
    double size = 0;
    for (double number : numbers) size = std::max(size, std::abs(number));
    return size;
}

// The largest difference; infinite if one is NaN.
double distance(const float* found, const Numbers& expected) {
    double most = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        const double difference = std::abs(found[i] - expected[i]);
        if (difference != difference) return INFINITY;
        most = std::max(most, difference);
    }
    return most;
}

void check_near(const float* found, const Numbers& expected, double size, double tolerance, const std::string& what) {
    const double difference = distance(found, expected);
    check(difference <= tolerance * size, "%s: differs by %.3g; the scale is %.3g, allowed is %.3g of it", what.c_str(),
          difference, size, tolerance);
}

void check_near(const float* found, const Numbers& expected, double tolerance, const std::string& what) {
    check_near(found, expected, largest(expected), tolerance, what);
}

template <class Container>
void check_same(const Container& found, const Container& expected, const std::string& what) {
    check(found.size() == expected.size(), "%s: %zu numbers, not %zu", what.c_str(), found.size(), expected.size());
    for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
        if (std::memcmp(found.data() + i, expected.data() + i, sizeof *found.data()) != 0) {
            check(false, "%s: number %zu is %.9g, not %.9g", what.c_str(), i, static_cast<double>(found.data()[i]),
                  static_cast<double>(expected.data()[i]));
            return;
        }
    }
    check(true, "same");
}

const std::pair<const char*, Floats Tensor::*> kParts[] = {
    {"value", &Tensor::value}, {"mean", &Tensor::mean}, {"square", &Tensor::square}, {"target", &Tensor::target}};

std::string tensor_name(const char* network, size_t index) {
    return std::string(network) + (index % 2 ? " bias " : " weight ") + std::to_string(index / 2);
}

void check_same_tensors(const Tensors& found, const Tensors& expected, const char* network, const std::string& what) {
    for (size_t i = 0; i < expected.size(); ++i) {
        const std::string name = what + ": " + tensor_name(network, i);
        for (const auto& [part, numbers] : kParts) {
            check_same(found[i].*numbers, expected[i].*numbers, name + "'s " + part);
        }
        check(found[i].step == expected[i].step, "%s: step %g, not %g", name.c_str(), found[i].step, expected[i].step);
    }
}

void check_same_outcome(const Outcome& found, const Outcome& expected, const std::string& what) {
    check_same_tensors(found.state.actor, expected.state.actor, "actor", what);
    check_same_tensors(found.state.critics, expected.state.critics, "critics", what);
    check_same(found.means, expected.means, what + ": means");
    if (!found.outputs.empty()) check_same(found.outputs, expected.outputs, what + ": outputs");
}

// Adam's moments are compared with the reference's. Values and targets are computed from the values before and the
// moments found, because Adam turns the rounding of a tiny gradient into a large step.
void check_learned(const Tensors& found, const Tensors& before, const Moments& expected, double lr, bool target_moves,
                   const char* network, const std::string& what) {
    for (size_t i = 0; i < found.size(); ++i) {
        const std::string name = what + ": " + tensor_name(network, i);
        const Tensor &now = found[i], &then = before[i];
        check(now.step == then.step + 1, "%s: step %g, not %g", name.c_str(), now.step, then.step + 1);
        check_near(now.mean.data(), expected.mean[i], kGradientTolerance, name + "'s mean");
        check_near(now.square.data(), expected.square[i], 2 * kGradientTolerance, name + "'s square");
        const Adam adam{lr, now.step};
        Numbers value, target;
        for (size_t n = 0; n < now.value.size(); ++n) {
            value.push_back(adam.stepped(then.value.data()[n], now.mean.data()[n], now.square.data()[n]));
            const double old = then.target.data()[n];
            target.push_back(target_moves ? old + kSettings.tau * (now.value.data()[n] - old) : old);
        }
        check_near(now.value.data(), value, kStepTolerance, name + "'s value");
        check_near(now.target.data(), target, target_moves ? kStepTolerance : 0, name + "'s target");
    }
}

// The parts of `outputs`, in their order.
std::vector<std::pair<const char*, const Numbers*>> parts_of(const Expected& expected) {
    return {{"next_action", &expected.next_action}, {"next_q1", &expected.next_q[0]}, {"next_q2", &expected.next_q[1]},
            {"target", &expected.target},           {"q1", &expected.q[0]},           {"q2", &expected.q[1]}};
}

void check_expected(const Outcome& found, const State& before, const Expected& expected, bool delayed,
                    const std::string& what) {
    check_learned(found.state.critics, before.critics, expected.critics, kSettings.critic_lr, delayed, "critics", what);
    if (delayed) {
        check_learned(found.state.actor, before.actor, expected.actor, kSettings.actor_lr, true, "actor", what);
    } else {
        check_same_tensors(found.state.actor, before.actor, "actor", what + ", not delayed");
    }
    double size = 0;  // of all outputs, because one can be the small difference of large sums
    for (const auto& [part, numbers] : parts_of(expected)) size = std::max(size, largest(*numbers));
    const float* outputs = found.outputs.data();
    for (const auto& [part, numbers] : parts_of(expected)) {
        check_near(outputs, *numbers, size, kForwardTolerance, what + ": " + part);
        outputs += numbers->size();
    }
    for (int i = 0; i < 5; ++i) {
        const double mean = found.means[i], right = expected.means[i];
        const bool near = std::abs(mean - right) <= kForwardTolerance * std::max(1.0, std::abs(right));
        check(near || (std::isnan(mean) && std::isnan(right)), "%s: mean %d is %.9g, not %.9g", what.c_str(), i, mean,
              right);
    }
}

// ---- the checks ----

const Sizes kSizes[] = {
    {1, 1, {1}, 1},
    {1, 1, {3}, 7},
    {17, 6, {17}, 100},
    {376, 17, {257}, 7},
    {17, 6, {255, 17}, 256},
    {17, 6, {257, 255}, 7},
    {17, 2, {40, 100}, 7},  // one row takes four strips at once; here fewer than four are left
    {376, 17, {17, 3}, 256},
    {1, 17, {257, 1}, 7},
    {17, 1, {1, 17}, 100},
    {1, 6, {3, 1, 17}, 7},
    {17, 17, {17, 255, 3}, 100},
    {376, 1, {3, 17, 257, 1}, 7},
    {1, 6, {1, 3, 1, 17}, 1},
    {17, 6, {257, 17, 1, 255}, 7},
};

// Compares a first update, after which Adam's mean is a tenth of the gradient, and a later one; one of them is delayed.
void check_against_reference(const Sizes& sizes, bool first_is_delayed, double floor, Rng& rng) {
    for (const bool fresh : {true, false}) {
        const bool delayed = fresh == first_is_delayed;
        const State state = random_state(sizes, fresh, rng);
        Sample sample = random_sample(sizes, rng);
        if (delayed) {
            sample.discount = Floats(sample.reward.size());
            fill_between(sample.discount, 0.5f, 1, rng);
        }
        Expected expected = reference_update(sizes, state, sample, delayed, floor);
        while (!expected.near_kink.empty()) {
            for (int row : expected.near_kink) sample.indices[row] = rng.below(sample.terminated.size());
            expected = reference_update(sizes, state, sample, delayed, floor);
        }
        check(largest(expected.critics.mean[0]) > 0, "%s: a gradient of zero proves nothing", sizes.name().c_str());

        std::vector<Outcome> outcomes;
        for (const std::string& kernels : all_kernels()) {
            Outcome& outcome = outcomes.emplace_back(Outcome{state, {}, {}});
            const auto engine = make(kernels, sizes, sizes.batch, 1);
            bind(*engine, outcome.state);
            update(*engine, sizes, sample, delayed, true, outcome, floor);
            const std::string what = sizes.name() + " " + kernels + (floor > 0 ? " with a floor" : "");
            check_expected(outcome, state, expected, delayed, what);

            const Outcome& first = outcomes.front();
            check_near(outcome.outputs.data(), Numbers(first.outputs.begin(), first.outputs.end()),
                       2 * kForwardTolerance, what + ": outputs, and by " + all_kernels()[0]);
            const Arrays means = arrays_of(first.state.critics, &Tensor::mean);
            for (size_t i = 0; i < means.size(); ++i) {
                check_near(outcome.state.critics[i].mean.data(), means[i], 2 * kGradientTolerance,
                           what + ": " + tensor_name("critics", i) + "'s mean, and by " + all_kernels()[0]);
            }
        }
    }
}

void check_threads(const Sizes& sizes, Rng& rng) {
    const State state = random_state(sizes, true, rng);
    const Sample sample = random_sample(sizes, rng);
    constexpr int updates = 3;  // the last one follows a delayed update
    for (const std::string& kernels : all_kernels()) {
        const std::string what = sizes.name() + " " + kernels;
        const Outcome alone = updated(kernels, sizes, state, sample, updates, {1});
        for (const int threads : {2, 4}) {
            check_same_outcome(updated(kernels, sizes, state, sample, updates, {threads}), alone,
                               what + " by " + std::to_string(threads) + " threads");
        }
        // After an update the engine's copies of the parameters are those that a refresh would make.
        check_same_outcome(updated(kernels, sizes, state, sample, updates, {2, false, true}), alone,
                           what + " refreshed and without outputs");
    }
}

// ---- TD7: its numbers are compared with the page's in Python; here its memory, its threads and its packed copies ----

struct Td7Sizes {
    int64_t observations, actions, embedding;
    std::vector<int64_t> embedding_hidden, actor_hidden, critic_hidden;
    int batch;

    Td7Shape shape() const {
        const auto layers = [](const std::vector<int64_t>& hidden) { return static_cast<int64_t>(hidden.size()) + 1; };
        return {observations, actions, embedding, layers(embedding_hidden), layers(actor_hidden), layers(critic_hidden),
                embedding_hidden.data(), actor_hidden.data(), critic_hidden.data()};
    }
    Sizes plain() const { return {static_cast<int>(observations), static_cast<int>(actions), actor_hidden, batch}; }
};

const Td7Sizes kTd7Sizes[] = {
    {17, 6, 20, {31, 18}, {33, 17}, {33, 17}, 50},
    {1, 1, 1, {}, {1}, {1}, 1},
    {3, 17, 3, {1, 5}, {30}, {14, 1, 257}, 7},
    {40, 2, 65, {40, 130}, {130, 65}, {65, 130}, 300},
};

struct Td7State {
    Tensors embedding, fixed, actor, critics;
};

Tensors random_tensors(std::vector<std::vector<int>> networks, int copies, Rng& rng) {
    Tensors all;
    for (const std::vector<int>& widths : networks) {
        for (Tensor& tensor : random_tensors(widths, copies, true, rng)) all.push_back(std::move(tensor));
    }
    return all;
}

Td7State random_td7_state(const Td7Sizes& sizes, Rng& rng) {
    const auto chain = [](int64_t inputs, const std::vector<int64_t>& hidden, int64_t outputs) {
        std::vector<int> widths{static_cast<int>(inputs)};
        widths.insert(widths.end(), hidden.begin(), hidden.end());
        widths.push_back(static_cast<int>(outputs));
        return widths;
    };
    const int64_t seen = sizes.observations, acts = sizes.actions, z = sizes.embedding;
    const std::vector<std::vector<int>> encoders = {chain(seen, sizes.embedding_hidden, z),
                                                    chain(z + acts, sizes.embedding_hidden, z)};
    const int64_t own = sizes.actor_hidden[0], critic = sizes.critic_hidden[0];
    return {random_tensors(encoders, 1, rng), random_tensors(encoders, 1, rng),
            random_tensors({chain(seen, {}, own), chain(own + z, sizes.actor_hidden, acts)}, 1, rng),
            random_tensors({chain(seen + acts, {}, critic), chain(critic + 2 * z, sizes.critic_hidden, 1)}, 2, rng)};
}

// Calls the C interface.
class Td7Interface final : public td3::Td7Engine {
  public:
    Td7Interface(const std::string& kernels, const Td7Shape& shape, int64_t rows, int threads)
        : engine_(td7_new(kernels.c_str(), &shape, rows, threads)) {
        if (!engine_) std::exit(1);
    }
    ~Td7Interface() override { td7_free(engine_); }
    void bind(const Td3Tensor* embedding, const Td3Tensor* fixed, const Td3Tensor* actor,
              const Td3Tensor* critics) override {
        td7_bind(engine_, embedding, fixed, actor, critics);
    }
    void refresh() override {}
    void update(const Td7Settings& settings, const Td3Memory& memory, const int64_t* indices, const float* noise,
                bool delayed, bool copied, double* means, float* outputs) override {
        td7_update(engine_, &settings, &memory, indices, noise, delayed, copied, means, outputs);
    }
    void act(const float* observations, int64_t rows, float* actions) override {
        if (!td7_act(engine_, observations, rows, actions)) std::abort();  // memory suffices here
    }

  private:
    Td7Handle* engine_;
};

std::unique_ptr<td3::Td7Engine> make_td7(const std::string& kernels, const Td7Sizes& sizes, int64_t rows, int threads) {
    if (kernels == td3::wide_kernels.name) return td3::wide_kernels.make_td7(sizes.shape(), rows, threads);
    return std::make_unique<Td7Interface>(kernels, sizes.shape(), rows, threads);
}

void bind(td3::Td7Engine& engine, Td7State& state, bool acting) {
    std::vector<Td3Tensor> bound[4];
    Tensors* networks[4] = {&state.embedding, &state.fixed, &state.actor, &state.critics};
    for (int i = 0; i < 4; ++i) {
        for (Tensor& tensor : *networks[i]) {
            if (acting) {
                bound[i].push_back({tensor.value.data(), nullptr, nullptr, nullptr, nullptr});
            } else {
                bound[i].push_back({tensor.value.data(), tensor.mean.data(), tensor.square.data(), &tensor.step,
                                    i == 0 ? nullptr : tensor.target.data()});
            }
        }
    }
    engine.bind(bound[0].data(), bound[1].data(), bound[2].data(), bound[3].data());
    engine.refresh();
}

struct Td7Outcome {
    Td7State state;
    std::vector<double> means;
    Floats actions;
};

// Six updates; every second is delayed, every third copies. Each binds again if `bound_again`.
Td7Outcome td7_updated(const std::string& kernels, const Td7Sizes& sizes, const Td7State& state, const Sample& sample,
                       int threads, bool bound_again) {
    Td7Outcome outcome{state, {}, Floats(sample.reward.size() * static_cast<size_t>(sizes.actions))};
    const auto engine = make_td7(kernels, sizes, sizes.batch, threads);
    bind(*engine, outcome.state, false);
    const Td7Settings settings = {0.98, 1, 0.2, 0.5, 3e-4, 1e-3, 0.75, 3e-4, -1, 1, 1, 1};
    for (int i = 1; i <= 6; ++i) {
        if (bound_again) bind(*engine, outcome.state, false);
        double means[8];
        Floats outputs(static_cast<size_t>(sizes.batch) * static_cast<size_t>(sizes.actions + 6));
        engine->update(settings, sample.memory(), sample.indices.data(), sample.noise.data(), i % 2 == 0, i % 3 == 0,
                       means, bound_again ? nullptr : outputs.data());
        outcome.means.insert(outcome.means.end(), means, means + 8);
    }
    engine->act(sample.observation.data(), static_cast<int64_t>(sample.reward.size()), outcome.actions.data());
    return outcome;
}

void check_td7(Rng rng) {
    for (const Td7Sizes& sizes : kTd7Sizes) {
        const Td7State state = random_td7_state(sizes, rng);
        const Sample sample = random_sample(sizes.plain(), rng);
        for (const std::string& kernels : all_kernels()) {
            const std::string what = "TD7 " + sizes.plain().name() + " " + kernels;
            Td7Outcome alone = td7_updated(kernels, sizes, state, sample, 1, false);
            check(alone.state.embedding[0].step == 6 && alone.state.actor[0].step == 3, "%s: steps", what.c_str());
            for (const float number : alone.state.critics[0].value) {
                check(std::isfinite(number), "%s: a weight is %g", what.c_str(), number);
            }
            for (const int threads : {1, 2, 4}) {
                // After an update the engine's copies of the parameters are those that binding would make.
                const Td7Outcome other = td7_updated(kernels, sizes, state, sample, threads, threads == 1);
                check_same_tensors(other.state.embedding, alone.state.embedding, "embedding", what);
                check_same_tensors(other.state.fixed, alone.state.fixed, "fixed", what);
                check_same_tensors(other.state.actor, alone.state.actor, "td7 actor", what);
                check_same_tensors(other.state.critics, alone.state.critics, "td7 critics", what);
                check_same(other.means, alone.means, what + ": means of td7");
            }
            const auto actor_only = make_td7(kernels, sizes, 0, 1);
            bind(*actor_only, alone.state, true);
            const int64_t rows = static_cast<int64_t>(sample.reward.size());
            Floats together(alone.actions.size()), single(alone.actions.size());
            actor_only->act(sample.observation.data(), rows, together.data());
            for (int64_t row = 0; row < rows; ++row) {
                actor_only->act(sample.observation.data() + row * sizes.observations, 1,
                                single.data() + row * sizes.actions);
            }
            check_same(together, alone.actions, what + ": actions");
            check_same(single, alone.actions, what + ": actions one by one");
        }
    }
}

// Many short updates: workers spin, fall asleep while the caller acts, and are woken again.
void check_many_updates(Rng rng) {
    const Sizes sizes{3, 2, {17, 5}, 9};
    const State state = random_state(sizes, true, rng);
    const Sample sample = random_sample(sizes, rng);
    for (const std::string& kernels : all_kernels()) {
        Outcome outcomes[3] = {{state, {}, {}}, {state, {}, {}}, {state, {}, {}}};
        const int threads[3] = {1, 2, 4};
        for (int options = 0; options < 3; ++options) {
            const auto engine = make(kernels, sizes, sizes.batch, threads[options]);
            bind(*engine, outcomes[options].state);
            const int64_t rows = static_cast<int64_t>(sample.reward.size());
            Floats actions(sample.reward.size() * sizes.actions);
            for (int i = 1; i <= 200; ++i) {
                update(*engine, sizes, sample, i % 2 == 0, i % 3 == 0, outcomes[options]);
                for (int times = 0; times < 20 && i % 20 == 0; ++times) {
                    engine->act(sample.observation.data(), rows, actions.data());
                }
            }
            check_same_outcome(outcomes[options], outcomes[0],
                               kernels + " after 200 updates by " + std::to_string(threads[options]) + " threads");
        }
    }
}

void check_acting(const Sizes& sizes, Rng& rng) {
    State state = random_state(sizes, true, rng);
    constexpr int most = 200;
    Floats observations(static_cast<size_t>(most) * sizes.observations);
    fill_normal(observations, 2, rng);
    const Network actor = actor_of(sizes, arrays_of(state.actor, &Tensor::value));
    Numbers expected;
    for (int row = 0; row < most; ++row) {
        const Pass pass = forward(actor, row_of(observations, row, sizes.observations));
        expected = concatenated(std::move(expected), tanh_of(pass.output));
    }
    for (const std::string& kernels : all_kernels()) {
        const std::string what = sizes.name() + " " + kernels;
        const auto engine = make(kernels, sizes, sizes.batch, 2), actor_only = make(kernels, sizes, 0, 1);
        bind(*engine, state);
        bind_actor(*actor_only, state);

        Floats one_by_one(static_cast<size_t>(most) * sizes.actions);
        for (int row = 0; row < most; ++row) {
            Floats observation(sizes.observations), action(sizes.actions);
            std::copy_n(observations.data() + row * sizes.observations, sizes.observations, observation.data());
            engine->act(observation.data(), 1, action.data());
            std::copy_n(action.data(), sizes.actions, one_by_one.data() + row * sizes.actions);
        }
        check_near(one_by_one.data(), expected, kForwardTolerance, what + ": actions");

        for (const int rows : {0, 1, 5, most}) {
            Floats some(static_cast<size_t>(rows) * sizes.observations);
            Floats right(static_cast<size_t>(rows) * sizes.actions);
            std::copy_n(observations.data(), some.size(), some.data());
            std::copy_n(one_by_one.data(), right.size(), right.data());
            for (td3::Engine* engine : {engine.get(), actor_only.get()}) {
                Floats found(right.size());
                engine->act(some.data(), rows, found.data());
                check_same(found, right, what + ": actions of " + std::to_string(rows) + " rows");
            }
        }

        Floats with_nan = observations, none(one_by_one.size());
        with_nan.data()[0] = NAN;
        engine->act(with_nan.data(), 1, none.data());
        for (int j = 0; j < sizes.actions; ++j) {
            const float action = none.data()[j];
            check(std::isnan(action), "%s: a NaN in the observation gives the action %g", what.c_str(), action);
        }

        std::vector<Floats> found(4, Floats(one_by_one.size()));
        std::vector<std::thread> threads;
        for (Floats& actions : found) {
            threads.emplace_back([&] { actor_only->act(observations.data(), most, actions.data()); });
        }
        for (std::thread& thread : threads) thread.join();
        for (const Floats& actions : found) check_same(actions, one_by_one, what + ": actions of several threads");
    }
}

void check_making_and_freeing(Rng rng) {
    const Sizes sizes{17, 6, {17, 3}, 7};
    const State state = random_state(sizes, true, rng);
    const Sample sample = random_sample(sizes, rng);
    for (const std::string& kernels : all_kernels()) {
        const Outcome right = updated(kernels, sizes, state, sample, 1, {1});
        for (int i = 0; i < 20; ++i) {
            make(kernels, sizes, sizes.batch, 4);  // its workers were never started
            make(kernels, sizes, 0, 1);
            check_same_outcome(updated(kernels, sizes, state, sample, 1, {4}), right, kernels + " created again");
        }
    }
}

// Where the system allows no threads, the caller does all the work.
void check_without_threads(Rng rng) {
#if defined(__GLIBC__)
    const Sizes sizes{17, 6, {17, 3}, 100};
    const State state = random_state(sizes, true, rng);
    const Sample sample = random_sample(sizes, rng);
    pthread_attr_t usual, impossible;
    pthread_getattr_default_np(&usual);
    pthread_attr_init(&impossible);
    pthread_attr_setstacksize(&impossible, size_t{1} << 50);  // more than there are addresses
    for (const std::string& kernels : all_kernels()) {
        const Outcome right = updated(kernels, sizes, state, sample, 2, {1});
        pthread_setattr_default_np(&impossible);
        bool refused = false;
        try {
            std::thread([] {}).join();
        } catch (const std::system_error&) {
            refused = true;
        }
        check(refused, "%s: threads can still be made, which proves nothing", kernels.c_str());
        check_same_outcome(updated(kernels, sizes, state, sample, 2, {4}), right, kernels + " without threads");
        pthread_setattr_default_np(&usual);
    }
    pthread_attr_destroy(&usual);
    pthread_attr_destroy(&impossible);
#endif
}

// Waits until every other thread sleeps. A sanitizer does not protect its own memory against a fork: what a starting
// worker has locked there stays locked in the child, and the child waits for ever.
void wait_until_others_sleep() {
#if defined(__linux__)
    for (int seen = 0; seen < 3;) {
        bool all = true;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            std::string stat;
            std::getline(std::ifstream(task.path() / "stat"), stat);
            const bool other = task.path().filename() != std::to_string(getpid());
            all = all && (!other || stat.compare(stat.rfind(')') + 1, 2, " S") == 0);
        }
        seen = all ? seen + 1 : 0;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
#endif
}

// The workers stay behind in the parent process.
void check_fork(Rng rng) {
#if defined(UNDER_THREAD_SANITIZER)
    return;  // it allows no new threads in a child of a process with several
#endif
    const Sizes sizes{17, 6, {17, 3}, 100};
    const State state = random_state(sizes, true, rng);
    const Sample sample = random_sample(sizes, rng);
    for (const std::string& kernels : all_kernels()) {
        const Outcome right = updated(kernels, sizes, state, sample, 2, {1});
        Outcome outcome{state, {}, {}};
        auto engine = make(kernels, sizes, sizes.batch, 2);
        bind(*engine, outcome.state);
        update(*engine, sizes, sample, false, true, outcome);
        for (const bool updates : {true, false}) {
            std::fflush(stdout);
            wait_until_others_sleep();
            const pid_t child = fork();
            if (child == 0) {
                failed = 0;
                if (updates) {
                    update(*engine, sizes, sample, true, true, outcome);
                    check_same_outcome(outcome, right, kernels + " after a fork, in the child");
                }
                engine.reset();
                std::fflush(stdout);
                if (failed > 0) _exit(1);
                // The workers' memory is freed only with the process: replace it before a leak check runs.
                execlp("true", "true", nullptr);
                _exit(2);
            }
            int status = -1;
            check(waitpid(child, &status, 0) == child, "%s: the child cannot be waited for", kernels.c_str());
            check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child that %s ended with status %d",
                  kernels.c_str(), updates ? "updated" : "only freed its engine", status);
        }
        update(*engine, sizes, sample, true, true, outcome);
        check_same_outcome(outcome, right, kernels + " after a fork, in the parent");
    }
}

uint64_t floating_point_setting() {
#if defined(__x86_64__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    uint64_t setting;
    asm volatile("mrs %0, fpcr" : "=r"(setting));
    return setting;
#else
    return 0;
#endif
}

void check_denormals_are_left_alone(Rng rng) {
    const Sizes sizes{17, 6, {17, 3}, 7};
    State state = random_state(sizes, true, rng);
    const Sample sample = random_sample(sizes, rng);
    for (const std::string& kernels : all_kernels()) {
        const auto engine = make(kernels, sizes, sizes.batch, 2);
        bind(*engine, state);
        const auto compare = [&](const char* caller) {
            const uint64_t before = floating_point_setting();
            Floats actions(sizes.actions);
            double means[5];
            engine->act(sample.observation.data(), 1, actions.data());
            const uint64_t acted = floating_point_setting();
            engine->update(kSettings, sample.memory(), sample.indices.data(), sample.noise.data(), true,
                           means, nullptr);
            const uint64_t learned = floating_point_setting();
            check(acted == before && learned == before, "%s, %s: the setting %jx became %jx acting, %jx learning",
                  kernels.c_str(), caller, uintmax_t{before}, uintmax_t{acted}, uintmax_t{learned});
        };
        compare("a caller that keeps denormals");
        const td3::FlushDenormals flush;
        compare("a caller that flushes them");
    }
}

void check_interface() {
    check(td3_interface() == TD3_INTERFACE, "the interface is %jd", intmax_t{td3_interface()});
    const Sizes sizes{1, 1, {3}, 1};
    const Td3Shape shape = sizes.shape();
    check(td3_new("no_such", &shape, 1, 1) == nullptr, "there are kernels named no_such");
    check(td3_peak("no_such", 1, 1e-3) == 0, "kernels named no_such have a peak");
    for (int64_t index = 0; td3_kernels(index); ++index) {
        const double peak = td3_peak(td3_kernels(index), 2, 1e-3);
        check(peak > 0 && std::isfinite(peak), "%s: a peak of %g", td3_kernels(index), peak);
    }
    td3_free(nullptr);
}

}  // namespace

int main() {
    check_denormals_are_left_alone(Rng(1));  // first, before anything else could have changed the setting
    check_interface();
    for (const Sizes& sizes : kSizes) {
        const uint64_t index = &sizes - kSizes;
        Rng rng(100 + index);
        check_against_reference(sizes, index % 2 == 0, 0, rng);
        check_threads(sizes, rng);
        check_acting(sizes, rng);
        Rng other(200 + index);
        check_against_reference(sizes, index % 2 == 0, kFloor, other);
    }
    check_td7(Rng(6));
    check_many_updates(Rng(2));
    check_making_and_freeing(Rng(3));
    check_without_threads(Rng(4));
    check_fork(Rng(5));
    if (failed) std::printf("%d checks failed\n", failed);
    std::printf("%d checks passed\n", passed);
    return failed ? 1 : 0;
}
