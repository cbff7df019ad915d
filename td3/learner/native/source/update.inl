// The update, steps 5 to 15 of td3.py, for an actor and critics of linear layers and ReLUs.
//
// Four phases: (A) critic pass over rows of the batch; (B) gradient, Adam and targets of parts of the critics'
// parameters; every policy_delay-th update (C) actor pass over rows of the batch; (D) gradient, Adam and target of
// parts of the actor's parameters. No two tasks of a phase write to the same memory.
//
// A delta is the loss's gradient with respect to a layer's outputs before their ReLU.

constexpr int BATCH_BLOCK = 128;  // most rows of the batch per task
constexpr int PARAMETER_BLOCK = 64;  // rows of a parameter per task: whole panels

struct Matrix {
    Buffer memory;
    int row = 0;  // floats from one row to the next
    Matrix() = default;
    Matrix(int64_t rows, int columns)
        : memory(static_cast<size_t>(rows) * static_cast<size_t>(padded(columns)) + STRIP), row(padded(columns)) {}
    float* at(int64_t i) { return memory.data() + i * row; }
};

struct Layer {
    int inputs = 0, outputs = 0;
    Parameter weight, bias;
};

using Layers = std::vector<Layer>;

struct ParameterRows {
    Parameter* parameter;
    int from, to;
};

struct Rows {
    int from, to;
    int count() const { return to - from; }
};

// The arrays an update returns, one after another in one block of memory.
struct Outputs {
    float *next_action = nullptr, *next_q1 = nullptr, *next_q2 = nullptr, *target = nullptr, *q1 = nullptr,
          *q2 = nullptr;
    Outputs() = default;
    Outputs(float* memory, ptrdiff_t rows, ptrdiff_t actions) : next_action(memory) {
        memory += rows * actions;
        for (float** part : {&next_q1, &next_q2, &target, &q1, &q2}) *part = std::exchange(memory, memory + rows);
    }
};

enum class Weights { online, target };

class CompiledEngine final : public Engine, Job {
  public:
    CompiledEngine(const Td3Shape& shape, int64_t rows, int threads)
        : observations_(static_cast<int>(shape.observations)), actions_(static_cast<int>(shape.actions)),
          batch_(static_cast<int>(rows)), pool_(std::make_unique<ThreadPool>(threads)), owner_pid_(getpid()) {
        for (int64_t i = 0; i + 1 < shape.layers; ++i) hidden_.push_back(static_cast<int>(shape.hidden[i]));
        make_actor();
        if (batch_ == 0) return;
        for (int which = 0; which < 2; ++which) make_critic(which);
        allocate(threads);
        plan(threads);
    }

    ~CompiledEngine() override {
        if (owner_pid_ != getpid()) pool_.release();  // its threads stayed in the parent process
    }

    void bind(const Td3Tensor* actor, const Td3Tensor* critics) override {
        for (Layer& layer : actor_) {
            layer.weight.tensor = *actor++;
            layer.bias.tensor = *actor++;
        }
        if (batch_ == 0) return;
        for (int which = 0; which < 2; ++which) {
            const Td3Tensor* tensor = critics;
            for (Layer& layer : critics_[which]) {
                const ptrdiff_t weights = static_cast<ptrdiff_t>(layer.inputs) * layer.outputs;
                layer.weight.tensor = offset_by(*tensor++, which * weights);
                layer.bias.tensor = offset_by(*tensor++, static_cast<ptrdiff_t>(which) * layer.outputs);
            }
        }
    }

    void refresh() override {
        for (Layers* network : {&actor_, &critics_[0], &critics_[1]}) {
            for (Layer& layer : *network) {
                for (Parameter* p : {&layer.weight, &layer.bias}) pack(*p, 0, p->rows, p->tensor.target != nullptr);
            }
        }
    }

    void update(const Td3Settings& settings, const Td3Memory& memory, const int64_t* indices, const float* noise,
                bool delayed, double* means, float* outputs) override {
        settings_ = settings, memory_ = memory, indices_ = indices, noise_ = noise;
        outputs_ = Outputs(outputs ? outputs : unused_outputs_.data(), batch_, actions_);
        const double step = count_step(critics_[0]);
        critic_step_ = adam_step(step, settings.critic_lr, settings.tau, delayed);
        if (delayed) actor_step_ = adam_step(count_step(actor_), settings.actor_lr, settings.tau, true);
        if (owner_pid_ != getpid()) {
            const int threads = pool_->threads();
            pool_.release();
            pool_ = std::make_unique<ThreadPool>(threads);
            owner_pid_ = getpid();
        }
        pool_->run(*this, delayed ? all_phases_ : critic_phases_);
        write_means(delayed, means);
    }

    void act(const float* observations, int64_t rows, float* actions) override {
        // Scratch memory per thread, because several may act at once; a few rows at a time keep it small.
        constexpr int chunk = 64;
        int widest = actions_;
        for (int units : hidden_) widest = std::max(widest, units);
        const int line = padded(widest);
        thread_local std::vector<float> scratch;
        scratch.resize(static_cast<size_t>(2 * std::min<int64_t>(chunk, rows)) * line + STRIP);
        for (int64_t done = 0; done < rows; done += chunk) {
            const int count = static_cast<int>(std::min<int64_t>(chunk, rows - done));
            const float* x = observations + done * observations_;
            ptrdiff_t x_row = observations_;
            float* buffers[2] = {scratch.data(), scratch.data() + static_cast<ptrdiff_t>(count) * line};
            for (size_t i = 0; i < actor_.size(); ++i) {
                float* y = buffers[i % 2];
                forward(actor_[i], Weights::online, WeightOrder::outputs_first, i + 1 < actor_.size(), count, x, x_row,
                        y, line);
                x = y, x_row = line;
            }
            for (int r = 0; r < count; ++r) apply_tanh(x + r * x_row, actions + (done + r) * actions_);
        }
    }

    void run_task(int task, int thread) override {
        if (task < critic_phases_[0]) {
            critic_pass(row_blocks_[task]);
        } else if (task < critic_phases_[1]) {
            update_parameter(critic_tasks_[task - critic_phases_[0]], critic_step_, thread);
        } else if (task < all_phases_[2]) {
            actor_pass(row_blocks_[task - critic_phases_[1]]);
        } else {
            update_parameter(actor_tasks_[task - all_phases_[2]], actor_step_, thread);
        }
    }

  private:
    // PyTorch keeps the actor's weights as (outputs, inputs), the critics' as (inputs, outputs).
    enum class WeightOrder { outputs_first, inputs_first };

    // ---- A · the critic pass: steps 5 to 12 up to the deltas ----

    void critic_pass(Rows rows) {
        const int n = rows.count();
        load_batch(rows);

        // 5 · The actor target plays the next action a' in s'.
        const float* output = actor_forward(Weights::target, rows, next_input_.at(rows.from));

        // 6 · Smoothing: clipped noise on every row and dimension of a', then back into bounds.
        const auto scale = static_cast<float>(settings_.target_noise), clip = static_cast<float>(settings_.noise_clip);
        for (int i = rows.from; i < rows.to; ++i) {
            float* action = next_input_.at(i) + observations_;
            apply_tanh(output + (i - rows.from) * pre_tanh_.row, action);
            const float* noise = noise_ + static_cast<ptrdiff_t>(i) * actions_;
            float* next_action = outputs_.next_action + static_cast<ptrdiff_t>(i) * actions_;
            for (int j = 0; j < actions_; ++j) {
                const float clipped_noise = std::min(std::max(noise[j] * scale, -clip), clip);
                next_action[j] = action[j] = clip_action(action[j] + clipped_noise);
            }
        }

        // 7 · Both critic targets evaluate the same (s', a').
        float* next_q[2] = {outputs_.next_q1 + rows.from, outputs_.next_q2 + rows.from};
        for (int which = 0; which < 2; ++which) {
            critic_forward(which, Weights::target, rows, next_input_, next_q[which]);
        }

        // 8 · The smaller value counts, row by row.
        // 9 · The target: reward, plus the discounted future unless the episode terminated there.
        const auto gamma = static_cast<float>(settings_.gamma);
        for (int i = rows.from; i < rows.to; ++i) {
            const int64_t row = indices_[i];
            const float q1 = outputs_.next_q1[i], q2 = outputs_.next_q2[i];
            const float smaller_q = q2 < q1 || q2 != q2 ? q2 : q1;
            const float discount = memory_.discount ? memory_.discount[row] : gamma;
            const float future = discount * (memory_.terminated[row] ? 0.0f : 1.0f) * smaller_q;
            outputs_.target[i] = memory_.reward[row] + future;
        }

        // 10 · Both critics evaluate the stored (s, a).
        // 11 · The loss: both critics' mean squared distance from the target; here its gradient in each value.
        // 12 · Backpropagate; here to every layer's delta.
        float* q[2] = {outputs_.q1 + rows.from, outputs_.q2 + rows.from};
        for (int which = 0; which < 2; ++which) {
            critic_forward(which, Weights::online, rows, input_, q[which]);
            float* delta = critic_deltas_[which].back().at(rows.from);
            const ptrdiff_t next_row = critic_deltas_[which].back().row;
            for (int i = 0; i < n; ++i) {
                delta[i * next_row] = (q[which][i] - outputs_.target[rows.from + i]) * (2.0f / batch_);
            }
            backward(critics_[which], WeightOrder::inputs_first, rows, critic_hidden_[which], critic_deltas_[which]);
        }
    }

    // ---- C · the actor pass: step 13 up to the deltas ----

    void actor_pass(Rows rows) {
        const int n = rows.count();
        // 13 · The actor climbs the first critic's value of its own action; that action replaces the stored one.
        const float* output = actor_forward(Weights::online, rows, input_.at(rows.from));
        for (int i = 0; i < n; ++i) apply_tanh(output + i * pre_tanh_.row, input_.at(rows.from + i) + observations_);
        critic_forward(0, Weights::online, rows, input_, values_.data() + rows.from);
        auto& deltas = critic_deltas_[0];
        for (int i = rows.from; i < rows.to; ++i) *deltas.back().at(i) = -1.0f / batch_;
        backward(critics_[0], WeightOrder::inputs_first, rows, critic_hidden_[0], deltas);
        // Back through the action inputs of the first critic's first layer, then through the tanh, into the actor.
        const Layer& first = critics_[0].front();
        Matrix& out = actor_deltas_.back();
        Product p{};
        p.rows = n, p.columns = actions_, p.depth = first.outputs;
        p.a = deltas.front().at(rows.from), p.a_row = deltas.front().row, p.a_step = 1;
        p.b = first.weight.transposed.memory.data();
        p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(first.outputs) * PANEL;
        p.c = out.at(rows.from), p.c_row = out.row;
        multiply(p);
        for (int i = rows.from; i < rows.to; ++i) {
            const float* action = input_.at(i) + observations_;
            float* delta = out.at(i);
            for (int j = 0; j < actions_; ++j) delta[j] *= 1.0f - action[j] * action[j];
        }
        backward(actor_, WeightOrder::outputs_first, rows, actor_hidden_, actor_deltas_);
    }

    // ---- B and D · the parameters: gradient and Adam (steps 12 and 13) and, in a delayed update: ----
    // 14 · The actor target moves a little towards the actor.
    // 15 · The critic targets move a little towards the critics.

    void update_parameter(const ParameterRows& task, const AdamStep& step, int thread) {
        update_rows(*task.parameter, task.from, task.to, batch_, scratch_[thread].data(), step);
    }

    // ---- parts of the passes ----

    void load_batch(Rows rows) {
        const size_t observation_bytes = sizeof(float) * observations_, action_bytes = sizeof(float) * actions_;
        for (int i = rows.from; i < rows.to; ++i) {  // so that all cache misses overlap
            const int64_t row = indices_[i];
            for (int at = 0; at < observations_ + 15; at += 16) {
                __builtin_prefetch(memory_.observation + row * observations_ + std::min(at, observations_ - 1));
                __builtin_prefetch(memory_.next_observation + row * observations_ + std::min(at, observations_ - 1));
            }
            __builtin_prefetch(memory_.action + row * actions_);
            __builtin_prefetch(memory_.reward + row);
            __builtin_prefetch(memory_.terminated + row);
        }
        for (int i = rows.from; i < rows.to; ++i) {
            const int64_t row = indices_[i];
            std::memcpy(input_.at(i), memory_.observation + row * observations_, observation_bytes);
            std::memcpy(input_.at(i) + observations_, memory_.action + row * actions_, action_bytes);
            std::memcpy(next_input_.at(i), memory_.next_observation + row * observations_, observation_bytes);
        }
    }

    static float clip_action(float x) { return x > 1.0f ? 1.0f : x < -1.0f ? -1.0f : x; }

    void apply_tanh(const float* output, float* action) const {
        for (int j = 0; j < actions_; j += WIDTH) {
            store_some(action + j, hyperbolic_tangent(load(output + j)), std::min(WIDTH, actions_ - j));
        }
    }

    static void forward(const Layer& layer, Weights weights, WeightOrder order, bool hidden, int rows, const float* x,
                        ptrdiff_t x_row, float* y, ptrdiff_t y_row) {
        const Parameter& weight = layer.weight;
        const bool online = weights == Weights::online;
        const bool transpose = order == WeightOrder::outputs_first;
        const Packed& packed = transpose ? (online ? weight.transposed : weight.target_transposed)
                                         : (online ? weight.direct : weight.target_direct);
        Product p{};
        p.rows = rows, p.columns = layer.outputs, p.depth = layer.inputs;
        p.a = x, p.a_row = x_row, p.a_step = 1;
        p.b = packed.memory.data(), p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(layer.inputs) * PANEL;
        p.c = y, p.c_row = y_row;
        p.bias = (online ? layer.bias.direct : layer.bias.target_direct).memory.data();
        p.epilogue = hidden ? Epilogue::relu : Epilogue::none;
        multiply(p);
    }

    // The actor's outputs for these rows, before the tanh.
    const float* actor_forward(Weights weights, Rows rows, const float* x) {
        ptrdiff_t x_row = input_.row;
        for (size_t i = 0; i < actor_.size(); ++i) {
            const bool hidden = i + 1 < actor_.size();
            Matrix& to = hidden ? (weights == Weights::online ? actor_hidden_[i] : target_hidden_[i]) : pre_tanh_;
            forward(actor_[i], weights, WeightOrder::outputs_first, hidden, rows.count(), x, x_row, to.at(rows.from),
                    to.row);
            x = to.at(rows.from), x_row = to.row;
        }
        return x;
    }

    // A critic's values for these rows; the online critic's activations are kept for the backward pass.
    void critic_forward(int which, Weights weights, Rows rows, Matrix& input, float* values) {
        const Layers& critic = critics_[which];
        const float* x = input.at(rows.from);
        ptrdiff_t x_row = input.row;
        for (size_t i = 0; i + 1 < critic.size(); ++i) {
            Matrix& to = weights == Weights::online ? critic_hidden_[which][i] : target_hidden_[i];
            forward(critic[i], weights, WeightOrder::inputs_first, true, rows.count(), x, x_row, to.at(rows.from),
                    to.row);
            x = to.at(rows.from), x_row = to.row;
        }
        const Layer& last = critic.back();
        const bool online = weights == Weights::online;
        const float* weight = (online ? last.weight.direct : last.weight.target_direct).memory.data();
        const float bias = *(online ? last.bias.direct : last.bias.target_direct).memory.data();
        multiply_by_one_column(rows.count(), last.inputs, x, x_row, weight, bias, values);
    }

    // From the last layer's deltas to every hidden layer's; zero where the ReLU was closed.
    static void backward(const Layers& network, WeightOrder order, Rows rows, std::vector<Matrix>& activations,
                         std::vector<Matrix>& deltas) {
        for (size_t i = network.size() - 1; i > 0; --i) {
            const Layer& layer = network[i];
            const bool last = i + 1 == network.size();  // one output: both orders are the same, see make_critic
            const bool direct = order == WeightOrder::outputs_first || last;
            const Packed& packed = direct ? layer.weight.direct : layer.weight.transposed;
            Product p{};
            p.rows = rows.count(), p.columns = layer.inputs, p.depth = layer.outputs;
            p.a = deltas[i].at(rows.from), p.a_row = deltas[i].row, p.a_step = 1;
            p.b = packed.memory.data(), p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(layer.outputs) * PANEL;
            p.c = deltas[i - 1].at(rows.from), p.c_row = deltas[i - 1].row;
            p.epilogue = Epilogue::mask, p.mask = activations[i - 1].at(rows.from);
            multiply(p);
        }
    }

    void write_means(bool delayed, double* means) const {
        double critic = 0, actor = 0, q1 = 0, q2 = 0, target = 0;
        for (int i = 0; i < batch_; ++i) {
            // Squared in float32, as in td3.py: a loss that overflows becomes infinite and is noticed.
            const float d1 = outputs_.q1[i] - outputs_.target[i], d2 = outputs_.q2[i] - outputs_.target[i];
            critic += d1 * d1 + d2 * d2, q1 += outputs_.q1[i], q2 += outputs_.q2[i], target += outputs_.target[i];
            if (delayed) actor -= values_.data()[i];
        }
        if (!delayed) actor = std::nan("");
        for (double sum : {critic, actor, q1, q2, target}) *means++ = sum / batch_;
    }

    // PyTorch counts each tensor's steps in a float of its own.
    double count_step(Layers& network) {
        for (Layer& layer : network) {
            *layer.weight.tensor.step += 1;
            *layer.bias.tensor.step += 1;
        }
        return *network.front().weight.tensor.step;
    }

    static Td3Tensor offset_by(Td3Tensor tensor, ptrdiff_t offset) {
        for (float** part : {&tensor.value, &tensor.mean, &tensor.square, &tensor.target}) {
            if (*part) *part += offset;
        }
        return tensor;  // both critics share the step count
    }

    // ---- construction ----

    static Packed direct_of(const Parameter& p) {
        return {Buffer(static_cast<size_t>(p.rows) * round_up(p.columns, STRIP)), 0};
    }

    static Packed transposed_of(const Parameter& p, int first = 0) {
        return {Buffer(static_cast<size_t>(p.columns) * round_up(p.rows - first, STRIP)), first};
    }

    void make_actor() {
        int inputs = observations_;
        for (size_t i = 0; i <= hidden_.size(); ++i) {
            const int outputs = i < hidden_.size() ? hidden_[i] : actions_;
            Layer& layer = add_layer(actor_, inputs, outputs);
            Parameter& weight = layer.weight;
            weight.rows = outputs, weight.columns = inputs;
            weight.transposed = transposed_of(weight);
            if (batch_ > 0) {
                weight.target_transposed = transposed_of(weight);
                layer.bias.target_direct = direct_of(layer.bias);
                if (i > 0) weight.direct = direct_of(weight);
            }
            inputs = outputs;
        }
    }

    void make_critic(int which) {
        int inputs = observations_ + actions_;
        for (size_t i = 0; i <= hidden_.size(); ++i) {
            const bool last = i == hidden_.size();
            const int outputs = last ? 1 : hidden_[i];
            Layer& layer = add_layer(critics_[which], inputs, outputs);
            Parameter& weight = layer.weight;
            weight.rows = last ? 1 : inputs, weight.columns = last ? inputs : outputs;  // (inputs, 1) is (1, inputs)
            weight.direct = direct_of(weight), weight.target_direct = direct_of(weight);
            layer.bias.target_direct = direct_of(layer.bias);
            if (!last && (i > 0 || which == 0)) weight.transposed = transposed_of(weight, i == 0 ? observations_ : 0);
            inputs = outputs;
        }
    }

    static Layer& add_layer(Layers& network, int inputs, int outputs) {
        Layer& layer = network.emplace_back();
        layer.inputs = inputs, layer.outputs = outputs;
        layer.bias.rows = 1, layer.bias.columns = outputs;
        layer.bias.direct = direct_of(layer.bias);
        return layer;
    }

    void allocate(int threads) {
        input_ = Matrix(batch_, observations_ + actions_);
        next_input_ = Matrix(batch_, observations_ + actions_);
        pre_tanh_ = Matrix(batch_, actions_);
        values_ = Buffer(batch_);
        unused_outputs_ = Buffer(static_cast<size_t>(batch_) * (actions_ + 5));
        int widest = observations_ + actions_;
        for (int units : hidden_) {
            widest = std::max(widest, units);
            target_hidden_.emplace_back(batch_, units);
            actor_hidden_.emplace_back(batch_, units);
            actor_deltas_.emplace_back(batch_, units);
            for (int which = 0; which < 2; ++which) {
                critic_hidden_[which].emplace_back(batch_, units);
                critic_deltas_[which].emplace_back(batch_, units);
            }
        }
        actor_deltas_.emplace_back(batch_, actions_);
        for (auto& deltas : critic_deltas_) deltas.emplace_back(batch_, 1);
        for (int thread = 0; thread < threads; ++thread) {
            scratch_.emplace_back(static_cast<size_t>(PARAMETER_BLOCK) * padded(std::max(widest, actions_)) + STRIP);
        }
    }

    // Sets which matrices each gradient is the product of, and divides the work into tasks.
    void plan(int threads) {
        for (int which = 0; which < 2; ++which) {
            for (size_t i = 0; i < critics_[which].size(); ++i) {
                Layer& layer = critics_[which][i];
                Matrix& x = i == 0 ? input_ : critic_hidden_[which][i - 1];
                Matrix& delta = critic_deltas_[which][i];
                if (i + 1 < critics_[which].size()) {
                    gradient_of(layer.weight, x, delta);
                } else {
                    gradient_of(layer.weight, delta, x);
                }
                bias_gradient(layer.bias, delta);
                add_tasks(layer, critic_tasks_);
            }
        }
        for (size_t i = 0; i < actor_.size(); ++i) {
            gradient_of(actor_[i].weight, actor_deltas_[i], i == 0 ? input_ : actor_hidden_[i - 1]);
            bias_gradient(actor_[i].bias, actor_deltas_[i]);
            add_tasks(actor_[i], actor_tasks_);
        }
        for (auto* tasks : {&critic_tasks_, &actor_tasks_}) {  // the longest first, so that the threads finish together
            std::stable_sort(tasks->begin(), tasks->end(), [](const ParameterRows& x, const ParameterRows& y) {
                return int64_t{x.to - x.from} * x.parameter->columns > int64_t{y.to - y.from} * y.parameter->columns;
            });
        }

        // Even blocks, small enough for the cache and large enough that reading the weights is not most of the work.
        const int count = std::min(batch_, std::max(threads, (batch_ + BATCH_BLOCK - 1) / BATCH_BLOCK));
        for (int i = 0; i < count; ++i) {
            const auto row = [&](int64_t block) { return static_cast<int>(batch_ * block / count); };
            row_blocks_.push_back({row(i), row(i + 1)});
        }
        const int blocks = count, critics = static_cast<int>(critic_tasks_.size());
        critic_phases_ = {blocks, blocks + critics};
        all_phases_ = {blocks, blocks + critics, 2 * blocks + critics,
                       2 * blocks + critics + static_cast<int>(actor_tasks_.size())};
        if (all_phases_.back() > ThreadPool::kMaxTasks) throw std::length_error("too many tasks for a thread pool");
    }

    static void gradient_of(Parameter& p, Matrix& a, Matrix& b) {
        p.a = a.at(0), p.a_row = 1, p.a_step = a.row;
        p.b = b.at(0), p.b_step = b.row;
    }

    static void bias_gradient(Parameter& p, Matrix& delta) {
        static const float one = 1.0f;
        p.a = &one, p.a_row = 0, p.a_step = 0;
        p.b = delta.at(0), p.b_step = delta.row;
    }

    static void add_tasks(Layer& layer, std::vector<ParameterRows>& tasks) {
        for (Parameter* p : {&layer.weight, &layer.bias}) {
            for (int from = 0; from < p->rows; from += PARAMETER_BLOCK) {
                tasks.push_back({p, from, std::min(p->rows, from + PARAMETER_BLOCK)});
            }
        }
    }

    const int observations_, actions_, batch_;
    std::vector<int> hidden_;
    Layers actor_, critics_[2];

    Matrix input_, next_input_;          // (s, a) and (s', a') side by side
    std::vector<Matrix> target_hidden_;  // hidden activations of a target network, not kept
    std::vector<Matrix> critic_hidden_[2], critic_deltas_[2], actor_hidden_, actor_deltas_;
    Matrix pre_tanh_;        // the actor's outputs before the tanh
    Buffer values_;          // the first critic's values of the actor's own actions
    Buffer unused_outputs_;  // takes the outputs where the caller wants none
    std::vector<Buffer> scratch_;

    std::vector<Rows> row_blocks_;
    std::vector<ParameterRows> critic_tasks_, actor_tasks_;
    std::vector<int> critic_phases_, all_phases_;  // where each phase ends
    std::unique_ptr<ThreadPool> pool_;
    int owner_pid_;  // the process the pool's threads live in

    Td3Settings settings_{};
    Td3Memory memory_{};
    const int64_t* indices_ = nullptr;
    const float* noise_ = nullptr;
    Outputs outputs_;
    AdamStep critic_step_{}, actor_step_{};
};

static std::unique_ptr<Engine> make(const Td3Shape& shape, int64_t rows, int threads) {
    return std::make_unique<CompiledEngine>(shape, rows, threads);
}

static double multiply_add(int64_t times) {
    constexpr int chains = 12;
    Vector sums[chains];
    Vector x = broadcast(1.0f), y = broadcast(1e-9f);
    for (int i = 0; i < chains; ++i) sums[i] = broadcast(static_cast<float>(i));
    for (int64_t t = 0; t < times; ++t) {
        asm volatile("" : "+m"(x), "+m"(y) : :);
        for (int repeat = 0; repeat < 64; ++repeat)
            for (int i = 0; i < chains; ++i) sums[i] = sums[i] * x + y;
    }
    for (int i = 0; i < chains; ++i) asm volatile("" : : "m"(sums[i]) :);
    return static_cast<double>(times) * 64 * chains * WIDTH * 2;
}
