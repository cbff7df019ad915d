// The thread pool: the calling thread and its workers take an update's tasks one by one, phase after phase.
//
// The caller waits only for tasks that a worker has begun, so a worker that is late or asleep costs nothing. A worker
// spins shortly for the next update, then sleeps. From time to time the pool reads how many threads are running on the
// machine: while other processes need the cores, the caller runs all tasks itself. It also does so for some updates
// after it had to wait long for a worker.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace td3 {

struct Job {
    virtual void run_task(int task, int thread) = 0;

  protected:
    ~Job() = default;
};

class ThreadPool {
  public:
    static constexpr int kMaxTasks = 60'000;

    explicit ThreadPool(int threads) : threads_(threads) {}
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const { return threads_; }

    // Runs the tasks 0 … phase_ends.back() − 1; phase p ends before task number phase_ends[p]. A task begins only when
    // all tasks of the phases before its own are done.
    void run(Job& job, const std::vector<int>& phase_ends);

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr int kMinSolo = 4, kMaxSolo = 64;
    static constexpr int kVotes = 3;  // load checks in a row with the same answer before it is believed

    void worker_loop(int thread);
    bool run_tasks(int thread, Clock::duration& longest);
    bool wait_until_done(int count, Clock::duration spin);
    int tasks_before_phase_of(int task) const;
    void start_workers();
    void check_load();
    void keep_workers_off_caller_core();

    const int threads_;
    std::vector<std::thread> workers_;
    int caller_core_ = -1;  // where the caller ran last
    bool started_ = false;
    int solo_runs_ = 0, next_solo_runs_ = kMinSolo;  // runs the caller still does alone, and how many the next time
    Clock::time_point load_checked_{};
    int busy_votes_ = 0;
    bool machine_busy_ = false;

    Job* job_ = nullptr;
    const std::vector<int>* phase_ends_ = nullptr;

    // One word holds the number of the run, its number of tasks and the next task. Whoever takes a task number below
    // the count holds a task of a run that cannot end without it.
    alignas(64) std::atomic<uint64_t> next_{0};
    alignas(64) std::atomic<int> done_{0};
    alignas(64) std::atomic<int> sleeping_{0};
    std::atomic<int> waiting_{0};
    std::atomic<bool> stopping_{false};
    std::mutex mutex_;
    std::condition_variable run_started_, task_done_;
};

}  // namespace td3
