// The thread pool; thread_pool.h describes its rules.
#include "thread_pool.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#if defined(__linux__)
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#endif

#include "processor.h"

namespace td3 {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kIdleSpin = std::chrono::microseconds(100);   // about the time between two updates
constexpr auto kLoadCheckInterval = std::chrono::milliseconds(10);   // a check costs some microseconds
constexpr auto kMinWait = std::chrono::microseconds(200);  // then a worker has probably lost its core

constexpr uint64_t kMask = 0xffff;

uint64_t word(uint64_t run, int count) { return run << 32 | static_cast<uint64_t>(count) << 16; }
uint64_t run_of(uint64_t word) { return word >> 32; }
int count_of(uint64_t word) { return static_cast<int>(word >> 16 & kMask); }
int index_of(uint64_t word) { return static_cast<int>(word & kMask); }

// Spins until `ready`, at most for `longest`; returns whether it became ready.
template <class Ready>
bool spin(Clock::duration longest, Ready ready) {
    const auto end = Clock::now() + longest;
    do {
        for (int i = 0; i < 64; ++i) {
            if (ready()) return true;
            cpu_relax();
        }
    } while (Clock::now() < end);
    return false;
}

// Returns how many threads are running or runnable on this machine now; −1 where the system does not say.
int running_threads() {
#if defined(__linux__)
    static const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    char text[128] = {};
    if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0) return -1;
    int running = -1;
    return std::sscanf(text, "%*s %*s %*s %d", &running) == 1 ? running : -1;
#else
    return -1;
#endif
}

int usable_cores() {
#if defined(__linux__)
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
#endif
    return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

void ThreadPool::run(Job& job, const std::vector<int>& phase_ends) {
    const int count = phase_ends.back();
    if (threads_ > 1) check_load();
    if (threads_ == 1 || machine_busy_ || solo_runs_ > 0) {
        solo_runs_ = std::max(0, solo_runs_ - 1);
        for (int task = 0; task < count; ++task) job.run_task(task, 0);
        return;
    }
    if (!started_) start_workers();
    keep_workers_off_caller_core();
    job_ = &job;
    phase_ends_ = &phase_ends;
    done_.store(0);
    next_.store(word(run_of(next_.load()) + 1, count));
    if (sleeping_.load() > 0) {
        std::lock_guard<std::mutex> lock(mutex_);
        run_started_.notify_all();
    }
    Clock::duration longest{0};
    const bool quick = run_tasks(0, longest);
    if (wait_until_done(count, kMinWait + 2 * longest) && quick) {
        next_solo_runs_ = kMinSolo;
    } else {
        solo_runs_ = next_solo_runs_;
        next_solo_runs_ = std::min(kMaxSolo, 2 * next_solo_runs_);
    }
}

// Workers that take a core from another process make both slower than each would be alone.
void ThreadPool::check_load() {
    const auto now = Clock::now();
    if (now - load_checked_ < kLoadCheckInterval) return;
    load_checked_ = now;
    const int running = running_threads();
    if (running < 0) return;
    const int awake = static_cast<int>(workers_.size()) - sleeping_.load();
    const int others = running - 1 - awake, cores = usable_cores();
    const bool too_few_cores = cores - others < std::min(threads_, cores);
    busy_votes_ = std::clamp(busy_votes_ + (too_few_cores ? 1 : -1), 0, kVotes);
    machine_busy_ = busy_votes_ == kVotes || (machine_busy_ && busy_votes_ > 0);
}

// Runs tasks until none is left. Returns whether every wait was short; `longest` becomes the longest task's time.
bool ThreadPool::run_tasks(int thread, Clock::duration& longest) {
    bool quick = true;
    for (;;) {
        const uint64_t taken = next_.fetch_add(1);
        const int task = index_of(taken);
        if (task >= count_of(taken)) return quick;
        quick = wait_until_done(tasks_before_phase_of(task), kMinWait + 2 * longest) && quick;
        const auto began = Clock::now();
        job_->run_task(task, thread);
        longest = std::max(longest, Clock::now() - began);
        done_.fetch_add(1);
        if (waiting_.load() > 0) {
            std::lock_guard<std::mutex> lock(mutex_);
            task_done_.notify_all();
        }
    }
}

int ThreadPool::tasks_before_phase_of(int task) const {
    int before = 0;
    for (int end : *phase_ends_) {
        if (task < end) break;
        before = end;
    }
    return before;
}

// Returns whether the wait was short.
bool ThreadPool::wait_until_done(int count, Clock::duration longest) {
    const auto ready = [&] { return done_.load() >= count; };
    if (ready() || spin(longest, ready)) return true;
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.fetch_add(1);
    task_done_.wait(lock, ready);
    waiting_.fetch_sub(1);
    return false;
}

void ThreadPool::worker_loop(int thread) {
    const FlushDenormals flush;
    uint64_t seen = 0;  // the last run this worker has joined
    for (;;) {
        const auto should_wake = [&] { return stopping_.load() || run_of(next_.load()) != seen; };
        if (!spin(kIdleSpin, should_wake)) {
            std::unique_lock<std::mutex> lock(mutex_);
            sleeping_.fetch_add(1);
            run_started_.wait(lock, should_wake);
            sleeping_.fetch_sub(1);
        }
        if (stopping_.load()) return;
        seen = run_of(next_.load());
        Clock::duration longest{0};
        run_tasks(thread, longest);
    }
}

// Starts as many as the system allows; with fewer, or none, the caller still completes the job.
void ThreadPool::start_workers() {
    started_ = true;
    try {
        for (int thread = 1; thread < threads_; ++thread) {
            workers_.emplace_back([this, thread] { worker_loop(thread); });
        }
    } catch (const std::exception&) {
    }
}

ThreadPool::~ThreadPool() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stopping_.store(true);
        run_started_.notify_all();
    }
    for (auto& worker : workers_) worker.join();
}

// The system tends to wake a thread on the core of its waker, where it would wait for the caller to finish.
void ThreadPool::keep_workers_off_caller_core() {
#if defined(__linux__)
    const int core = sched_getcpu();
    if (core == caller_core_) return;
    caller_core_ = core;
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return;
    CPU_CLR(core, &cores);
    if (CPU_COUNT(&cores) == 0) return;
    for (auto& worker : workers_) pthread_setaffinity_np(worker.native_handle(), sizeof cores, &cores);
#endif
}

}  // namespace td3
