// The team: the calling thread and its helpers take an update's tasks one by one, phase after phase.
//
// Nobody waits for a helper that has not begun anything, so a helper that is late or asleep costs nothing but its
// help. A helper spins shortly for the next update, then sleeps. Now and then the system is asked how many threads run
// on it: where others need the cores, the caller works alone until they do not. And when it had to wait long for a
// helper all the same, it works alone for a while.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace td3 {

struct Work {
    virtual void perform(int task, int thread) = 0;

  protected:
    ~Work() = default;
};

class Team {
  public:
    static constexpr int kMostTasks = 60'000;

    explicit Team(int threads) : threads_(threads) {}
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int threads() const { return threads_; }

    // Performs the tasks 0 … phases.back() − 1; phase p ends before task number phases[p]. A task begins only when
    // every task of the phases before its own is done.
    void run(Work& work, const std::vector<int>& phases);

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr int kLeastAlone = 4, kMostAlone = 64;
    static constexpr int kVotes = 3;  // looks in a row that tell of others, or of none, before it is believed

    void help(int thread);
    bool take_tasks(int thread, Clock::duration& longest);
    bool wait_until_done(int count, Clock::duration spin);
    int tasks_before(int task) const;
    void hire();
    void look_around();
    void keep_off_my_core();

    const int threads_;
    std::vector<std::thread> helpers_;
    int avoided_core_ = -1;         // where the caller was last seen
    bool hired_ = false;
    int alone_ = 0, patience_ = kLeastAlone;  // runs still to be done alone, and how many it will be the next time
    Clock::time_point looked_{};
    int votes_ = 0;         // of the looks around
    bool crowded_ = false;  // what they have come to

    Work* work_ = nullptr;
    const std::vector<int>* phases_ = nullptr;

    // One word says which run it is, how many tasks it has and which is next: whoever takes a number below the count
    // holds a task of a run that cannot end without it.
    alignas(64) std::atomic<uint64_t> next_{0};
    alignas(64) std::atomic<int> done_{0};
    alignas(64) std::atomic<int> sleeping_{0};
    std::atomic<int> waiting_{0};
    std::atomic<bool> over_{false};
    std::mutex door_;
    std::condition_variable rung_, finished_;
};

}  // namespace td3
