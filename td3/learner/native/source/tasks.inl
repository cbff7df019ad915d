// The tasks of an update: blocks of the batch's rows for the passes, blocks of a parameter's rows for the steps.

constexpr int BATCH_BLOCK = 128;     // most rows of the batch per task
constexpr int PARAMETER_BLOCK = 64;  // rows of a parameter per task: whole panels

struct ParameterRows {
    Parameter* parameter;
    int from, to;
};

struct Tasks {
    std::vector<Rows> rows;
    std::vector<ParameterRows> critics, actor;
    std::vector<int> critic_phases, all_phases;  // where each phase ends

    void divide(Networks& networks, int batch, int threads) {
        for (Layers& critic : networks.critics) add(critic, critics);
        add(networks.actor, actor);

        rows = blocks(batch, threads, BATCH_BLOCK);
        const int count = static_cast<int>(rows.size()), steps = static_cast<int>(critics.size());
        critic_phases = {count, count + steps};
        all_phases = {count, count + steps, 2 * count + steps, 2 * count + steps + static_cast<int>(actor.size())};
        if (all_phases.back() > ThreadPool::kMaxTasks) throw std::length_error("too many tasks for a thread pool");
    }

    // Even blocks, small enough for the cache and large enough that reading the weights is not most of the work.
    static std::vector<Rows> blocks(int batch, int threads, int most) {
        const int count = std::min(batch, std::max(threads, (batch + most - 1) / most));
        std::vector<Rows> found;
        for (int i = 0; i < count; ++i) {
            const auto row = [&](int64_t block) { return static_cast<int>(batch * block / count); };
            found.push_back({row(i), row(i + 1)});
        }
        return found;
    }

    static void add(Layers& network, std::vector<ParameterRows>& tasks) {
        for (Layer& layer : network) {
            for (Parameter* p : {&layer.weight, &layer.bias}) {
                for (int from = 0; from < p->rows; from += PARAMETER_BLOCK) {
                    tasks.push_back({p, from, std::min(p->rows, from + PARAMETER_BLOCK)});
                }
            }
        }
        // The longest first, so that the threads finish together.
        std::stable_sort(tasks.begin(), tasks.end(), [](const ParameterRows& x, const ParameterRows& y) {
            return int64_t{x.to - x.from} * x.parameter->columns > int64_t{y.to - y.from} * y.parameter->columns;
        });
    }
};
