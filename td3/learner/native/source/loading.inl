// Copies the sampled transitions from the replay memory: (s, a) to `input`, s' to `next_input`.

static void load_batch(const Td3Memory& memory, const int64_t* indices, Rows rows, int observations, int actions,
                       Matrix& input, Matrix& next_input) {
    const size_t observation_bytes = sizeof(float) * observations, action_bytes = sizeof(float) * actions;
    for (int i = rows.from; i < rows.to; ++i) {  // so that all cache misses overlap
        const int64_t row = indices[i];
        for (int at = 0; at < observations + 15; at += 16) {
            __builtin_prefetch(memory.observation + row * observations + std::min(at, observations - 1));
            __builtin_prefetch(memory.next_observation + row * observations + std::min(at, observations - 1));
        }
        __builtin_prefetch(memory.action + row * actions);
        __builtin_prefetch(memory.reward + row);
        __builtin_prefetch(memory.terminated + row);
    }
    for (int i = rows.from; i < rows.to; ++i) {
        const int64_t row = indices[i];
        std::memcpy(input.at(i), memory.observation + row * observations, observation_bytes);
        std::memcpy(input.at(i) + observations, memory.action + row * actions, action_bytes);
        std::memcpy(next_input.at(i), memory.next_observation + row * observations, observation_bytes);
    }
}
