// The tasks of an update of TD7, and what follows its leader in steps 14 and 15.

constexpr int TD7_BATCH_BLOCK = 128;  // most rows of the batch per task

// Rows of a parameter that its target follows; f_t and g_t then follow the embedding that learns, their leader.
struct Following {
    Parameter *parameter, *leader;
    int from, to;
};

struct Td7Tasks {
    std::vector<Rows> rows;
    std::vector<ParameterRows> embedding, critics, actor;
    std::vector<Following> following;
    std::vector<int> phases[2][2];  // where each phase ends: [delayed][copied]

    void divide(Td7Networks& networks, int batch, int threads) {
        Tasks::add(networks.f, embedding), Tasks::add(networks.g, embedding);
        for (int which = 0; which < 2; ++which) {
            Tasks::add(networks.critic_linear[which], critics), Tasks::add(networks.critics[which], critics);
        }
        Tasks::add(networks.actor_linear, actor), Tasks::add(networks.actor, actor);
        follow(networks.fixed_f, &networks.f), follow(networks.fixed_g, &networks.g);
        for (Layers* network : {&networks.actor_linear, &networks.actor, &networks.critic_linear[0],
                                &networks.critic_linear[1], &networks.critics[0], &networks.critics[1]}) {
            follow(*network, nullptr);
        }
        rows = Tasks::blocks(batch, threads, TD7_BATCH_BLOCK);
        for (const bool delayed : {false, true}) {
            for (const bool copied : {false, true}) {
                std::vector<int>& ends = phases[delayed][copied];
                int end = 0;
                const auto phase = [&](bool happens, size_t tasks) {
                    ends.push_back(end += happens ? static_cast<int>(tasks) : 0);
                };
                phase(true, rows.size()), phase(true, embedding.size() + critics.size());
                phase(delayed, rows.size()), phase(delayed, actor.size());
                phase(copied, following.size());
                if (end > ThreadPool::kMaxTasks) throw std::length_error("too many tasks for a thread pool");
            }
        }
    }

  private:
    void follow(Layers& network, Layers* leaders) {
        for (size_t i = 0; i < network.size(); ++i) {
            Layer &layer = network[i], *leader = leaders ? &(*leaders)[i] : nullptr;
            for (const auto part : {&Layer::weight, &Layer::bias}) {
                Parameter *p = &(layer.*part), *leads = leader ? &(leader->*part) : nullptr;
                for (int from = 0; from < p->rows; from += PARAMETER_BLOCK) {
                    following.push_back({p, leads, from, std::min(p->rows, from + PARAMETER_BLOCK)});
                }
            }
        }
    }
};

static void follow(float* follower, const float* leader, ptrdiff_t count, float rate) {
    if (rate == 1.0f) {
        std::memcpy(follower, leader, sizeof(float) * count);
    } else {
        for (ptrdiff_t i = 0; i < count; ++i) polyak(follower + i, leader[i], rate);
    }
}

// 14 · The actor target becomes the actor, every `target_every` updates; with 0, it follows as in TD3.
// 15 · So do the critic targets, with their embedding: f_{t−1} becomes f_t. Then f_t becomes f_{t+1}.
static void follow(const Following& task, float rate) {
    Parameter& p = *task.parameter;
    const ptrdiff_t first = static_cast<ptrdiff_t>(task.from) * p.columns;
    const ptrdiff_t count = static_cast<ptrdiff_t>(task.to - task.from) * p.columns;
    follow(p.tensor.target + first, p.tensor.value + first, count, rate);
    if (task.leader) {
        follow(p.tensor.value + first, task.leader->tensor.value + first, count, rate);
        pack(p, task.from, task.to, true);
    } else {
        pack_target(p, task.from, task.to);
    }
}
