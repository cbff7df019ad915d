// The engine: steps 5 to 15 of td3.py, for an actor and critics of linear layers and ReLUs.
//
// Four phases: (A) critic_pass.inl over rows of the batch; (B) adam.inl over parts of the critics' parameters; in every
// policy_delay-th update (C) actor_pass.inl over rows of the batch; (D) adam.inl over parts of the actor's parameters.
// No two tasks of a phase write to the same memory.

class CompiledEngine final : public Engine, Job {
  public:
    CompiledEngine(const Td3Shape& shape, int64_t rows, int threads)
        : networks_(shape, rows == 0), batch_(static_cast<int>(rows)),
          pool_(std::make_unique<ThreadPool>(threads)), owner_pid_(getpid()) {
        if (batch_ == 0) return;  // it can only act
        work_ = Workspace(networks_, batch_, threads);
        set_gradients();
        tasks_.divide(networks_, batch_, threads);
    }

    ~CompiledEngine() override {
        if (owner_pid_ != getpid()) pool_.release();  // its threads stayed in the parent process
    }

    void bind(const Td3Tensor* actor, const Td3Tensor* critics) override { networks_.bind(actor, critics); }

    void refresh() override { networks_.pack_all(); }

    void update(const Td3Settings& settings, const Td3Memory& memory, const int64_t* indices, const float* noise,
                bool delayed, double* means, float* outputs) override {
        settings_ = settings, memory_ = memory, indices_ = indices, noise_ = noise;
        outputs_ = Outputs(outputs ? outputs : work_.unused_outputs.data(), batch_, networks_.actions);
        const double step = Networks::count_step(networks_.critics[0]);
        critic_step_ = adam_step(step, settings.critic_lr, settings.tau, delayed);
        if (delayed) {
            const double actor_step = Networks::count_step(networks_.actor);
            actor_step_ = adam_step(actor_step, settings.actor_lr, settings.tau, true);
        }
        if (owner_pid_ != getpid()) {
            const int threads = pool_->threads();
            pool_.release();
            pool_ = std::make_unique<ThreadPool>(threads);
            owner_pid_ = getpid();
        }
        pool_->run(*this, delayed ? tasks_.all_phases : tasks_.critic_phases);
        write_means(delayed, means);
    }

    void run_task(int task, int thread) override {
        const std::vector<int>& ends = tasks_.all_phases;
        if (task < ends[0]) {
            critic_pass(tasks_.rows[task]);
        } else if (task < ends[1]) {
            step_rows(tasks_.critics[task - ends[0]], critic_step_, thread);
        } else if (task < ends[2]) {
            actor_pass(tasks_.rows[task - ends[1]]);
        } else {
            step_rows(tasks_.actor[task - ends[2]], actor_step_, thread);
        }
    }

    void act(const float* observations, int64_t rows, float* actions) override;

  private:
    void critic_pass(Rows rows);
    void actor_pass(Rows rows);
    void step_rows(const ParameterRows& task, const AdamStep& step, int thread) {
        step_parameter(*task.parameter, task.from, task.to, batch_, work_.scratch[thread].data(), step);
    }

    void critic_forward(int which, Weights weights, Rows rows, Matrix& input, float* values);
    const float* actor_forward(Weights weights, Rows rows, Matrix& input);

    void write_means(bool delayed, double* means) const {
        double critic = 0, actor = 0, q1 = 0, q2 = 0, target = 0;
        const auto floor = static_cast<float>(settings_.loss_floor);
        for (int i = 0; i < batch_; ++i) {
            // In float32, as in td3.py: a loss that overflows becomes infinite and is noticed.
            const float d1 = outputs_.q1[i] - outputs_.target[i], d2 = outputs_.q2[i] - outputs_.target[i];
            critic += floor > 0 ? lap_loss(d1, floor) + lap_loss(d2, floor) : d1 * d1 + d2 * d2;
            q1 += outputs_.q1[i], q2 += outputs_.q2[i], target += outputs_.target[i];
            if (delayed) actor -= work_.values.data()[i];
        }
        if (!delayed) actor = std::nan("");
        for (double sum : {critic, actor, q1, q2, target}) *means++ = sum / batch_;
    }

    // Sets which matrices the gradient of each parameter is the product of: a layer's inputs and its deltas.
    void set_gradients() {
        for (int which = 0; which < 2; ++which) {
            Layers& critic = networks_.critics[which];
            for (size_t i = 0; i < critic.size(); ++i) {
                Matrix& x = i == 0 ? work_.input : work_.critic_hidden[which][i - 1];
                Matrix& deltas = work_.critic_deltas[which][i];
                const bool last = i + 1 == critic.size();
                critic[i].weight.set_gradient(last ? deltas : x, last ? x : deltas);
                critic[i].bias.set_gradient(deltas);
            }
        }
        for (size_t i = 0; i < networks_.actor.size(); ++i) {
            Matrix& x = i == 0 ? work_.input : work_.actor_hidden[i - 1];
            networks_.actor[i].weight.set_gradient(work_.actor_deltas[i], x);
            networks_.actor[i].bias.set_gradient(work_.actor_deltas[i]);
        }
    }

    Networks networks_;
    const int batch_;
    Workspace work_;
    Tasks tasks_;
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
