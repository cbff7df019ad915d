// The update, steps 5 to 15 of the page `td3.py`, for actor and critics made of linear layers and ReLUs.
//
// Four phases: (A) rows of the batch: targets, both critics, the slopes back through them; (B) parts of the critics'
// parameters: gradient, Adam, target; every policy_delay-th time (C) rows: the actor's way through the first critic;
// (D) parts of the actor's parameters. Within a phase the tasks share nothing that is written.

constexpr int PIECE = 128;  // rows of the batch per task, at most
constexpr int BLOCK = 64;   // rows of a parameter per task: whole panels

struct Matrix {
    Buffer memory;
    int row = 0;  // from one row to the next
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

struct Task {
    Parameter* parameter;
    int from, to;
};

struct Rows {
    int from, to;
    int count() const { return to - from; }
};

// What an update tells, one after another.
struct Told {
    float *next_action = nullptr, *next_q1 = nullptr, *next_q2 = nullptr, *target = nullptr, *q1 = nullptr,
          *q2 = nullptr;
    Told() = default;
    Told(float* memory, ptrdiff_t rows, ptrdiff_t actions) : next_action(memory) {
        memory += rows * actions;
        for (float** part : {&next_q1, &next_q2, &target, &q1, &q2}) *part = std::exchange(memory, memory + rows);
    }
};

enum class Whose { own, target };

class Engine final : public Performer, Work {
  public:
    Engine(const Td3Shape& shape, int64_t rows, int threads)
        : observations_(static_cast<int>(shape.observations)), actions_(static_cast<int>(shape.actions)),
          batch_(static_cast<int>(rows)), team_(std::make_unique<Team>(threads)), owner_(getpid()) {
        for (int64_t i = 0; i + 1 < shape.layers; ++i) hidden_.push_back(static_cast<int>(shape.hidden[i]));
        make_actor();
        if (batch_ == 0) return;
        for (int which = 0; which < 2; ++which) make_critic(which);
        make_room(threads);
        plan(threads);
    }

    ~Engine() override {
        if (owner_ != getpid()) team_.release();  // its threads stayed in the process this one was forked from
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
                layer.weight.tensor = moved(*tensor++, which * static_cast<ptrdiff_t>(layer.inputs) * layer.outputs);
                layer.bias.tensor = moved(*tensor++, static_cast<ptrdiff_t>(which) * layer.outputs);
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

    void update(const Td3Settings& settings, const Td3Memory& memory, const int64_t* picked, const float* noise,
                bool delayed, double* means, float* told) override {
        settings_ = settings, memory_ = memory, picked_ = picked, noise_ = noise;
        told_ = Told(told ? told : untold_.data(), batch_, actions_);
        const double step = count_step(critics_[0]);
        critic_sweep_ = sweep_at(step, settings.critic_lr, settings.tau, delayed);
        if (delayed) actor_sweep_ = sweep_at(count_step(actor_), settings.actor_lr, settings.tau, true);
        if (owner_ != getpid()) {
            const int threads = team_->threads();
            team_.release();
            team_ = std::make_unique<Team>(threads);
            owner_ = getpid();
        }
        team_->run(*this, delayed ? with_actor_ : critics_only_);
        tell_means(delayed, means);
    }

    void act(const float* observations, int64_t rows, float* actions) override {
        // Its own room, for several threads may act at once; a few rows at a time, for the room stays small.
        constexpr int most = 64;
        int widest = actions_;
        for (int units : hidden_) widest = std::max(widest, units);
        const int line = padded(widest);
        thread_local std::vector<float> room;
        room.resize(static_cast<size_t>(2 * std::min<int64_t>(most, rows)) * line + STRIP);
        for (int64_t done = 0; done < rows; done += most) {
            const int count = static_cast<int>(std::min<int64_t>(most, rows - done));
            const float* x = observations + done * observations_;
            ptrdiff_t x_row = observations_;
            float* spare[2] = {room.data(), room.data() + static_cast<ptrdiff_t>(count) * line};
            for (size_t i = 0; i < actor_.size(); ++i) {
                float* y = spare[i % 2];
                forward(actor_[i], Whose::own, Hand::actor, i + 1 < actor_.size(), count, x, x_row, y, line);
                x = y, x_row = line;
            }
            for (int r = 0; r < count; ++r) squash(x + r * x_row, actions + (done + r) * actions_);
        }
    }

    void perform(int task, int thread) override {
        if (task < critics_only_[0]) {
            judge(pieces_[task]);
        } else if (task < critics_only_[1]) {
            learn(critic_tasks_[task - critics_only_[0]], critic_sweep_, thread);
        } else if (task < with_actor_[2]) {
            improve(pieces_[task - critics_only_[1]]);
        } else {
            learn(actor_tasks_[task - with_actor_[2]], actor_sweep_, thread);
        }
    }

  private:
    // The actor keeps weights (outputs, inputs), the critics (inputs, outputs): each finds its forward copy elsewhere.
    enum class Hand { actor, critic };

    // ---- A · steps 5 to 12, as far as rows go ----

    void judge(Rows rows) {
        const int n = rows.count();
        gather(rows);

        // 5 · The actor target plays the next action a' in s'.
        const float* output = play(Whose::target, rows, next_.at(rows.from));

        // 6 · Smoothing: clipped noise on every row and dimension of a', then back into bounds.
        const auto scale = static_cast<float>(settings_.target_noise), clip = static_cast<float>(settings_.noise_clip);
        for (int i = rows.from; i < rows.to; ++i) {
            float* played = next_.at(i) + observations_;
            squash(output + (i - rows.from) * outputs_.row, played);
            const float* noise = noise_ + static_cast<ptrdiff_t>(i) * actions_;
            float* next_action = told_.next_action + static_cast<ptrdiff_t>(i) * actions_;
            for (int j = 0; j < actions_; ++j) {
                const float shaken = std::min(std::max(noise[j] * scale, -clip), clip);
                next_action[j] = played[j] = clipped(played[j] + shaken);
            }
        }

        // 7 · Both critic targets judge the same (s', a').
        float* next_q[2] = {told_.next_q1 + rows.from, told_.next_q2 + rows.from};
        for (int which = 0; which < 2; ++which) value(which, Whose::target, rows, next_, next_q[which]);

        // 8 · The smaller value counts, row by row.
        // 9 · The target: reward, plus the discounted future unless the episode terminated there.
        const auto gamma = static_cast<float>(settings_.gamma);
        for (int i = rows.from; i < rows.to; ++i) {
            const int64_t picked = picked_[i];
            const float q1 = told_.next_q1[i], q2 = told_.next_q2[i];
            const float smaller_q = q2 < q1 || q2 != q2 ? q2 : q1;
            const float discount = memory_.discount ? memory_.discount[picked] : gamma;
            const float future = discount * (memory_.terminated[picked] ? 0.0f : 1.0f) * smaller_q;
            told_.target[i] = memory_.reward[picked] + future;
        }

        // 10 · Both critics judge the remembered (s, a).
        // 11 · The loss: both critics' mean squared distance from the target; here its slope in each value.
        // 12 · Backpropagate; here to every layer's outputs.
        float* q[2] = {told_.q1 + rows.from, told_.q2 + rows.from};
        for (int which = 0; which < 2; ++which) {
            value(which, Whose::own, rows, current_, q[which]);
            float* slope = slopes_[which].back().at(rows.from);
            const ptrdiff_t next_row = slopes_[which].back().row;
            for (int i = 0; i < n; ++i) {
                slope[i * next_row] = (q[which][i] - told_.target[rows.from + i]) * (2.0f / batch_);
            }
            go_back(critics_[which], Hand::critic, rows, traces_[which], slopes_[which]);
        }
    }

    // ---- C · step 13, as far as rows go ----

    void improve(Rows rows) {
        const int n = rows.count();
        // 13 · The actor climbs the first critic's value of its own action. The memory's actions are needed no more.
        const float* output = play(Whose::own, rows, current_.at(rows.from));
        for (int i = 0; i < n; ++i) squash(output + i * outputs_.row, current_.at(rows.from + i) + observations_);
        value(0, Whose::own, rows, current_, values_.data() + rows.from);
        auto& slopes = slopes_[0];
        for (int i = rows.from; i < rows.to; ++i) *slopes.back().at(i) = -1.0f / batch_;
        go_back(critics_[0], Hand::critic, rows, traces_[0], slopes);
        // … through the action into the actor: the first critic's first layer, its action inputs only; then the tanh.
        const Layer& first = critics_[0].front();
        Matrix& out = actor_slopes_.back();
        Product p{};
        p.rows = n, p.columns = actions_, p.depth = first.outputs;
        p.a = slopes.front().at(rows.from), p.a_row = slopes.front().row, p.a_step = 1;
        p.b = first.weight.across.memory.data();
        p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(first.outputs) * PANEL;
        p.c = out.at(rows.from), p.c_row = out.row;
        multiply(p);
        for (int i = rows.from; i < rows.to; ++i) {
            const float* action = current_.at(i) + observations_;
            float* slope = out.at(i);
            for (int j = 0; j < actions_; ++j) slope[j] *= 1.0f - action[j] * action[j];
        }
        go_back(actor_, Hand::actor, rows, actor_trace_, actor_slopes_);
    }

    // ---- B and D · the parameters: gradient and Adam (steps 12 and 13), and in the same sweep, if delayed: ----
    // 14 · The actor target moves a little towards the actor.
    // 15 · The critic targets move a little towards the critics.

    void learn(const Task& task, const Sweep& sweep, int thread) {
        learn_rows(*task.parameter, task.from, task.to, batch_, scratch_[thread].data(), sweep);
    }

    // ---- the pieces ----

    void gather(Rows rows) {
        const size_t observation_bytes = sizeof(float) * observations_, action_bytes = sizeof(float) * actions_;
        for (int i = rows.from; i < rows.to; ++i) {  // all misses of the cache at once, not one after another
            const int64_t row = picked_[i];
            for (int at = 0; at < observations_ + 15; at += 16) {
                __builtin_prefetch(memory_.observation + row * observations_ + std::min(at, observations_ - 1));
                __builtin_prefetch(memory_.next_observation + row * observations_ + std::min(at, observations_ - 1));
            }
            __builtin_prefetch(memory_.action + row * actions_);
            __builtin_prefetch(memory_.reward + row);
            __builtin_prefetch(memory_.terminated + row);
        }
        for (int i = rows.from; i < rows.to; ++i) {
            const int64_t row = picked_[i];
            std::memcpy(current_.at(i), memory_.observation + row * observations_, observation_bytes);
            std::memcpy(current_.at(i) + observations_, memory_.action + row * actions_, action_bytes);
            std::memcpy(next_.at(i), memory_.next_observation + row * observations_, observation_bytes);
        }
    }

    static float clipped(float x) { return x > 1.0f ? 1.0f : x < -1.0f ? -1.0f : x; }

    void squash(const float* output, float* action) const {
        for (int j = 0; j < actions_; j += WIDTH) {
            store_some(action + j, hyperbolic_tangent(load(output + j)), std::min(WIDTH, actions_ - j));
        }
    }

    static void forward(const Layer& layer, Whose whose, Hand hand, bool hidden, int rows, const float* x,
                        ptrdiff_t x_row, float* y, ptrdiff_t y_row) {
        const Parameter& weight = layer.weight;
        const bool own = whose == Whose::own;
        const Packed& packed = hand == Hand::actor ? (own ? weight.across : weight.target_across)
                                                   : (own ? weight.direct : weight.target_direct);
        Product p{};
        p.rows = rows, p.columns = layer.outputs, p.depth = layer.inputs;
        p.a = x, p.a_row = x_row, p.a_step = 1;
        p.b = packed.memory.data(), p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(layer.inputs) * PANEL;
        p.c = y, p.c_row = y_row;
        p.start = (own ? layer.bias.direct : layer.bias.target_direct).memory.data();
        p.ending = hidden ? Ending::relu : Ending::plain;
        multiply(p);
    }

    // An actor's plain outputs for these rows.
    const float* play(Whose whose, Rows rows, const float* x) {
        ptrdiff_t x_row = current_.row;
        for (size_t i = 0; i < actor_.size(); ++i) {
            const bool hidden = i + 1 < actor_.size();
            Matrix& to = hidden ? (whose == Whose::own ? actor_trace_[i] : passing_[i]) : outputs_;
            forward(actor_[i], whose, Hand::actor, hidden, rows.count(), x, x_row, to.at(rows.from), to.row);
            x = to.at(rows.from), x_row = to.row;
        }
        return x;
    }

    // A critic's values for these rows; its own way leaves a trace for the way back.
    void value(int which, Whose whose, Rows rows, Matrix& input, float* values) {
        const Layers& critic = critics_[which];
        const float* x = input.at(rows.from);
        ptrdiff_t x_row = input.row;
        for (size_t i = 0; i + 1 < critic.size(); ++i) {
            Matrix& to = whose == Whose::own ? traces_[which][i] : passing_[i];
            forward(critic[i], whose, Hand::critic, true, rows.count(), x, x_row, to.at(rows.from), to.row);
            x = to.at(rows.from), x_row = to.row;
        }
        const Layer& last = critic.back();
        const bool own = whose == Whose::own;
        const float* weight = (own ? last.weight.direct : last.weight.target_direct).memory.data();
        const float bias = *(own ? last.bias.direct : last.bias.target_direct).memory.data();
        multiply_by_one_column(rows.count(), last.inputs, x, x_row, weight, bias, values);
    }

    // From the slopes at the last layer's outputs to those at every hidden layer's, closed where a ReLU was closed.
    static void go_back(const Layers& network, Hand hand, Rows rows, std::vector<Matrix>& trace,
                        std::vector<Matrix>& slopes) {
        for (size_t i = network.size() - 1; i > 0; --i) {
            const Layer& layer = network[i];
            const bool last = i + 1 == network.size();  // a critic's last weight lies as an actor's: see make_critic
            const Packed& packed = hand == Hand::actor || last ? layer.weight.direct : layer.weight.across;
            Product p{};
            p.rows = rows.count(), p.columns = layer.inputs, p.depth = layer.outputs;
            p.a = slopes[i].at(rows.from), p.a_row = slopes[i].row, p.a_step = 1;
            p.b = packed.memory.data(), p.b_step = PANEL, p.b_panel = static_cast<ptrdiff_t>(layer.outputs) * PANEL;
            p.c = slopes[i - 1].at(rows.from), p.c_row = slopes[i - 1].row;
            p.ending = Ending::masked, p.mask = trace[i - 1].at(rows.from);
            multiply(p);
        }
    }

    void tell_means(bool delayed, double* means) const {
        double critic = 0, actor = 0, q1 = 0, q2 = 0, target = 0;
        for (int i = 0; i < batch_; ++i) {
            // Squared in floats, as on the page: a loss too large for one is infinite, and that is how it is noticed.
            const float d1 = told_.q1[i] - told_.target[i], d2 = told_.q2[i] - told_.target[i];
            critic += d1 * d1 + d2 * d2, q1 += told_.q1[i], q2 += told_.q2[i], target += told_.target[i];
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

    static Td3Tensor moved(Td3Tensor tensor, ptrdiff_t offset) {
        for (float** part : {&tensor.value, &tensor.mean, &tensor.square, &tensor.target}) {
            if (*part) *part += offset;
        }
        return tensor;  // both critics share a step
    }

    // ---- making it ----

    static Packed direct_of(const Parameter& p) {
        return {Buffer(static_cast<size_t>(p.rows) * round_up(p.columns, STRIP)), 0};
    }

    static Packed across_of(const Parameter& p, int first = 0) {
        return {Buffer(static_cast<size_t>(p.columns) * round_up(p.rows - first, STRIP)), first};
    }

    void make_actor() {
        int inputs = observations_;
        for (size_t i = 0; i <= hidden_.size(); ++i) {
            const int outputs = i < hidden_.size() ? hidden_[i] : actions_;
            Layer& layer = add_layer(actor_, inputs, outputs);
            Parameter& weight = layer.weight;
            weight.rows = outputs, weight.columns = inputs;
            weight.across = across_of(weight);
            if (batch_ > 0) {
                weight.target_across = across_of(weight);
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
            if (!last && (i > 0 || which == 0)) weight.across = across_of(weight, i == 0 ? observations_ : 0);
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

    void make_room(int threads) {
        current_ = Matrix(batch_, observations_ + actions_);
        next_ = Matrix(batch_, observations_ + actions_);
        outputs_ = Matrix(batch_, actions_);
        values_ = Buffer(batch_);
        untold_ = Buffer(static_cast<size_t>(batch_) * (actions_ + 5));
        int widest = observations_ + actions_;
        for (int units : hidden_) {
            widest = std::max(widest, units);
            passing_.emplace_back(batch_, units);
            actor_trace_.emplace_back(batch_, units);
            actor_slopes_.emplace_back(batch_, units);
            for (int which = 0; which < 2; ++which) {
                traces_[which].emplace_back(batch_, units);
                slopes_[which].emplace_back(batch_, units);
            }
        }
        actor_slopes_.emplace_back(batch_, actions_);
        for (auto& slopes : slopes_) slopes.emplace_back(batch_, 1);
        for (int thread = 0; thread < threads; ++thread) {
            scratch_.emplace_back(static_cast<size_t>(BLOCK) * padded(std::max(widest, actions_)) + STRIP);
        }
    }

    // Which numbers each gradient is the product of, and how the work is cut.
    void plan(int threads) {
        for (int which = 0; which < 2; ++which) {
            for (size_t i = 0; i < critics_[which].size(); ++i) {
                Layer& layer = critics_[which][i];
                Matrix& x = i == 0 ? current_ : traces_[which][i - 1];
                Matrix& slope = slopes_[which][i];
                if (i + 1 < critics_[which].size()) {
                    gradient_of(layer.weight, x, slope);
                } else {
                    gradient_of(layer.weight, slope, x);
                }
                bias_gradient(layer.bias, slope);
                cut(layer, critic_tasks_);
            }
        }
        for (size_t i = 0; i < actor_.size(); ++i) {
            gradient_of(actor_[i].weight, actor_slopes_[i], i == 0 ? current_ : actor_trace_[i - 1]);
            bias_gradient(actor_[i].bias, actor_slopes_[i]);
            cut(actor_[i], actor_tasks_);
        }
        for (auto* tasks : {&critic_tasks_, &actor_tasks_}) {  // the longest first: the last ones even out
            std::stable_sort(tasks->begin(), tasks->end(), [](const Task& x, const Task& y) {
                return int64_t{x.to - x.from} * x.parameter->columns > int64_t{y.to - y.from} * y.parameter->columns;
            });
        }

        // Even pieces: their numbers stay in the cache, and they are not so small that reading the weights is the work.
        const int count = std::min(batch_, std::max(threads, (batch_ + PIECE - 1) / PIECE));
        for (int i = 0; i < count; ++i) {
            const auto row = [&](int64_t piece) { return static_cast<int>(batch_ * piece / count); };
            pieces_.push_back({row(i), row(i + 1)});
        }
        const int pieces = count, critics = static_cast<int>(critic_tasks_.size());
        critics_only_ = {pieces, pieces + critics};
        with_actor_ = {pieces, pieces + critics, 2 * pieces + critics,
                       2 * pieces + critics + static_cast<int>(actor_tasks_.size())};
        if (with_actor_.back() > Team::kMostTasks) throw std::length_error("more tasks than a team can count");
    }

    static void gradient_of(Parameter& p, Matrix& a, Matrix& b) {
        p.a = a.at(0), p.a_row = 1, p.a_step = a.row;
        p.b = b.at(0), p.b_step = b.row;
    }

    static void bias_gradient(Parameter& p, Matrix& slope) {
        static const float one = 1.0f;
        p.a = &one, p.a_row = 0, p.a_step = 0;
        p.b = slope.at(0), p.b_step = slope.row;
    }

    static void cut(Layer& layer, std::vector<Task>& tasks) {
        for (Parameter* p : {&layer.weight, &layer.bias}) {
            for (int from = 0; from < p->rows; from += BLOCK) {
                tasks.push_back({p, from, std::min(p->rows, from + BLOCK)});
            }
        }
    }

    const int observations_, actions_, batch_;
    std::vector<int> hidden_;
    Layers actor_, critics_[2];

    Matrix current_, next_;                     // (s, a) and (s', a') side by side
    std::vector<Matrix> passing_;               // hidden layers of targets: looked at once
    std::vector<Matrix> traces_[2], slopes_[2];  // hidden outputs of each critic, and the loss's slope in every output
    std::vector<Matrix> actor_trace_, actor_slopes_;
    Matrix outputs_;  // of an actor, before the tanh
    Buffer values_;   // the first critic's, of the actor's own actions
    Buffer untold_;   // where an update is told if nobody asks
    std::vector<Buffer> scratch_;

    std::vector<Rows> pieces_;
    std::vector<Task> critic_tasks_, actor_tasks_;
    std::vector<int> critics_only_, with_actor_;  // where each phase ends
    std::unique_ptr<Team> team_;
    int owner_;  // the process whose threads the team has

    Td3Settings settings_{};
    Td3Memory memory_{};
    const int64_t* picked_ = nullptr;
    const float* noise_ = nullptr;
    Told told_;
    Sweep critic_sweep_{}, actor_sweep_{};
};

static std::unique_ptr<Performer> make(const Td3Shape& shape, int64_t rows, int threads) {
    return std::make_unique<Engine>(shape, rows, threads);
}

static double multiply_add(int64_t times) {
    constexpr int chains = 12;
    Vector sums[chains];
    Vector x = all(1.0f), y = all(1e-9f);
    for (int i = 0; i < chains; ++i) sums[i] = all(static_cast<float>(i));
    for (int64_t t = 0; t < times; ++t) {
        asm volatile("" : "+m"(x), "+m"(y) : :);
        for (int repeat = 0; repeat < 64; ++repeat)
            for (int i = 0; i < chains; ++i) sums[i] = sums[i] * x + y;
    }
    for (int i = 0; i < chains; ++i) asm volatile("" : : "m"(sums[i]) :);
    return static_cast<double>(times) * 64 * chains * WIDTH * 2;
}
