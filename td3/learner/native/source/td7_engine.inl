// The engine of TD7: steps 4½ to 15 of td7.py, for an embedding, an actor and critics of linear layers, ReLUs and ELUs.
//
// Five phases: (A) embedding_pass.inl and td7_critic_pass.inl over rows of the batch; (B) adam.inl over parts of the
// embedding's and the critics' parameters; in every policy_delay-th update (C) td7_actor_pass.inl over rows of the
// batch and (D) adam.inl over parts of the actor's parameters; (E) where targets are copied, td7_tasks.inl over parts
// of them. No two tasks of a phase write to the same memory.

class CompiledTd7Engine final : public Td7Engine, Job {
  public:
    CompiledTd7Engine(const Td7Shape& shape, int64_t rows, int threads)
        : networks_(shape, rows == 0), batch_(static_cast<int>(rows)),
          pool_(std::make_unique<ThreadPool>(threads)), owner_pid_(getpid()) {
        if (batch_ == 0) return;  // it can only act
        work_ = Td7Workspace(networks_, batch_, threads);
        set_gradients();
        tasks_.divide(networks_, batch_, threads);
    }

    ~CompiledTd7Engine() override {
        if (owner_pid_ != getpid()) pool_.release();  // its threads stayed in the parent process
    }

    void bind(const Td3Tensor* embedding, const Td3Tensor* fixed, const Td3Tensor* actor,
              const Td3Tensor* critics) override {
        networks_.bind(embedding, fixed, actor, critics);
    }

    void refresh() override { networks_.pack_all(); }

    void update(const Td7Settings& settings, const Td3Memory& memory, const int64_t* indices, const float* noise,
                bool delayed, bool copied, double* means, float* outputs) override {
        settings_ = settings, memory_ = memory, indices_ = indices, noise_ = noise;
        outputs_ = Td7Outputs(outputs ? outputs : work_.unused_outputs.data(), batch_, networks_.actions);
        embedding_step_ = step_of({&networks_.f, &networks_.g}, settings.embedding_lr);
        critic_step_ = step_of({&networks_.critic_linear[0], &networks_.critics[0]}, settings.critic_lr);
        if (delayed) actor_step_ = step_of({&networks_.actor_linear, &networks_.actor}, settings.actor_lr);
        if (owner_pid_ != getpid()) {
            const int threads = pool_->threads();
            pool_.release();
            pool_ = std::make_unique<ThreadPool>(threads);
            owner_pid_ = getpid();
        }
        phase_ends_ = &tasks_.phases[delayed][copied];
        pool_->run(*this, *phase_ends_);
        if (copied) networks_.pack_action_columns();
        write_means(delayed, means);
    }

    void run_task(int task, int thread) override {
        const std::vector<int>& ends = *phase_ends_;
        if (task < ends[0]) {
            const Rows rows = tasks_.rows[task];
            load_batch(memory_, indices_, rows, networks_.observations, networks_.actions, work_.input,
                       work_.next_input);
            embedding_pass(rows);
            critic_pass(rows);
        } else if (task < ends[1]) {
            const int index = task - ends[0], embeddings = static_cast<int>(tasks_.embedding.size());
            if (index < embeddings) {
                step_rows(tasks_.embedding[index], embedding_step_, thread);
            } else {
                step_rows(tasks_.critics[index - embeddings], critic_step_, thread);
            }
        } else if (task < ends[2]) {
            actor_pass(tasks_.rows[task - ends[1]]);
        } else if (task < ends[3]) {
            step_rows(tasks_.actor[task - ends[2]], actor_step_, thread);
        } else {
            follow(tasks_.following[task - ends[3]], static_cast<float>(settings_.rate));
        }
    }

    void act(const float* observations, int64_t rows, float* actions) override;

  private:
    void embedding_pass(Rows rows);
    void critic_pass(Rows rows);
    void actor_pass(Rows rows);
    void step_rows(const ParameterRows& task, const AdamStep& step, int thread) {
        step_parameter(*task.parameter, task.from, task.to, batch_, work_.scratch[thread].data(), step);
    }

    void actor_forward(Weights weights, Rows rows, Matrix& input);
    void embed(Weights weights, Rows rows, Matrix& input);
    void embed_pair(Weights weights, Rows rows, Matrix& input);
    void critic_forward(int which, Weights weights, Rows rows, Matrix& input, float* values);
    void critic_backward(int which, Rows rows, int columns);

    // Counts a step of these networks, which have moved equally often.
    static AdamStep step_of(std::initializer_list<Layers*> networks, double lr) {
        double step = 0;
        for (Layers* network : networks) step = Networks::count_step(*network);
        return adam_step(step, lr, 0, false);
    }

    void write_means(bool delayed, double* means) const {
        double critic = 0, actor = 0, q1 = 0, q2 = 0, target = 0, prediction = 0;
        const auto floor = static_cast<float>(settings_.loss_floor);
        float smallest = outputs_.target[0], largest = smallest;
        for (int i = 0; i < batch_; ++i) {
            // In float32, as in td7.py: a loss that overflows becomes infinite and is noticed.
            const float d1 = outputs_.q1[i] - outputs_.target[i], d2 = outputs_.q2[i] - outputs_.target[i];
            critic += floor > 0 ? lap_loss(d1, floor) + lap_loss(d2, floor) : d1 * d1 + d2 * d2;
            q1 += outputs_.q1[i], q2 += outputs_.q2[i], target += outputs_.target[i];
            prediction += work_.prediction_loss.data()[i];
            const float y = outputs_.target[i];  // NaN stays NaN
            smallest = y < smallest || y != y ? y : smallest, largest = y > largest || y != y ? y : largest;
            if (delayed) actor -= work_.values[0].data()[i];
            if (delayed && settings_.both_critics) actor -= work_.values[1].data()[i];
        }
        if (settings_.both_critics) actor /= 2;
        if (!delayed) actor = std::nan("");
        for (double sum : {critic, actor, q1, q2, target, prediction}) *means++ = sum / batch_;
        *means++ = smallest, *means = largest;
    }

    // Sets which matrices the gradient of each parameter is the product of: a layer's inputs and its deltas.
    void set_gradients() {
        const auto set = [](Layers& network, WeightOrder order, Matrix& input, std::vector<Matrix>& hidden,
                            std::vector<Matrix>& deltas) {
            for (size_t i = 0; i < network.size(); ++i) {
                Matrix& x = i == 0 ? input : hidden[i - 1];
                const bool deltas_first = order == WeightOrder::outputs_first || i + 1 == network.size();
                network[i].weight.set_gradient(deltas_first ? deltas[i] : x, deltas_first ? x : deltas[i]);
                network[i].bias.set_gradient(deltas[i]);
            }
        };
        set(networks_.f, WeightOrder::outputs_first, work_.input, work_.f_hidden, work_.f_deltas);
        set(networks_.g, WeightOrder::outputs_first, work_.pair, work_.g_hidden, work_.g_deltas);
        set(networks_.actor, WeightOrder::outputs_first, work_.actor_input, work_.actor_hidden, work_.actor_deltas);
        networks_.actor_linear[0].weight.set_gradient(work_.actor_linear_deltas, work_.input);
        networks_.actor_linear[0].bias.set_gradient(work_.actor_linear_deltas);
        for (int which = 0; which < 2; ++which) {
            set(networks_.critics[which], WeightOrder::inputs_first, work_.critic_input[which],
                work_.critic_hidden[which], work_.critic_deltas[which]);
            Layer& linear = networks_.critic_linear[which][0];
            linear.weight.set_gradient(work_.input, work_.critic_linear_deltas[which]);
            linear.bias.set_gradient(work_.critic_linear_deltas[which]);
        }
    }

    Td7Networks networks_;
    const int batch_;
    Td7Workspace work_;
    Td7Tasks tasks_;
    std::unique_ptr<ThreadPool> pool_;
    int owner_pid_;  // the process the pool's threads live in

    Td7Settings settings_{};
    Td3Memory memory_{};
    const int64_t* indices_ = nullptr;
    const float* noise_ = nullptr;
    Td7Outputs outputs_;
    AdamStep embedding_step_{}, critic_step_{}, actor_step_{};
    const std::vector<int>* phase_ends_ = nullptr;
};

static std::unique_ptr<Td7Engine> make_td7(const Td7Shape& shape, int64_t rows, int threads) {
    return std::make_unique<CompiledTd7Engine>(shape, rows, threads);
}
