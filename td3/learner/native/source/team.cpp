// The team at work; see team.h for the rules.
#include "team.h"

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

constexpr auto kIdleSpin = std::chrono::microseconds(100);   // about the way from one update to the next
constexpr auto kLookEvery = std::chrono::milliseconds(10);   // costs some microseconds
constexpr auto kLeastWait = std::chrono::microseconds(200);  // before the caller thinks a helper has lost its core

constexpr uint64_t kLow = 0xffff;

uint64_t word(uint64_t run, int count) { return run << 32 | static_cast<uint64_t>(count) << 16; }
uint64_t run_of(uint64_t word) { return word >> 32; }
int count_of(uint64_t word) { return static_cast<int>(word >> 16 & kLow); }
int index_of(uint64_t word) { return static_cast<int>(word & kLow); }

// Spins until `ready`, at most so long; tells whether it became ready.
template <class Ready>
bool spin(Clock::duration longest, Ready ready) {
    const auto end = Clock::now() + longest;
    do {
        for (int i = 0; i < 64; ++i) {
            if (ready()) return true;
            relax();
        }
    } while (Clock::now() < end);
    return false;
}

// How many threads run or want to run on this machine at this moment, and how many cores we may use; −1 where the
// system does not tell.
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

void Team::run(Work& work, const std::vector<int>& phases) {
    const int count = phases.back();
    if (threads_ > 1) look_around();
    if (threads_ == 1 || crowded_ || alone_ > 0) {
        alone_ = std::max(0, alone_ - 1);
        for (int task = 0; task < count; ++task) work.perform(task, 0);
        return;
    }
    if (!hired_) hire();
    keep_off_my_core();
    work_ = &work;
    phases_ = &phases;
    done_.store(0);
    next_.store(word(run_of(next_.load()) + 1, count));
    if (sleeping_.load() > 0) {
        std::lock_guard<std::mutex> lock(door_);
        rung_.notify_all();
    }
    Clock::duration longest{0};
    const bool quick = take_tasks(0, longest);
    if (wait_until_done(count, kLeastWait + 2 * longest) && quick) {
        patience_ = kLeastAlone;
    } else {
        alone_ = patience_;
        patience_ = std::min(kMostAlone, 2 * patience_);
    }
}

// Helpers that would take a core from somebody else make both slower than each would be alone.
void Team::look_around() {
    const auto now = Clock::now();
    if (now - looked_ < kLookEvery) return;
    looked_ = now;
    const int running = running_threads();
    if (running < 0) return;
    const int awake = static_cast<int>(helpers_.size()) - sleeping_.load();
    const int others = running - 1 - awake, cores = usable_cores();
    const bool no_room = cores - others < std::min(threads_, cores);
    votes_ = std::clamp(votes_ + (no_room ? 1 : -1), 0, kVotes);
    crowded_ = votes_ == kVotes || (crowded_ && votes_ > 0);
}

// Takes tasks until none is left; tells whether no wait was long, and how long the longest task took.
bool Team::take_tasks(int thread, Clock::duration& longest) {
    bool quick = true;
    for (;;) {
        const uint64_t taken = next_.fetch_add(1);
        const int task = index_of(taken);
        if (task >= count_of(taken)) return quick;
        quick = wait_until_done(tasks_before(task), kLeastWait + 2 * longest) && quick;
        const auto began = Clock::now();
        work_->perform(task, thread);
        longest = std::max(longest, Clock::now() - began);
        done_.fetch_add(1);
        if (waiting_.load() > 0) {
            std::lock_guard<std::mutex> lock(door_);
            finished_.notify_all();
        }
    }
}

int Team::tasks_before(int task) const {
    int before = 0;
    for (int end : *phases_) {
        if (task < end) break;
        before = end;
    }
    return before;
}

// Tells whether it was quick.
bool Team::wait_until_done(int count, Clock::duration longest) {
    const auto ready = [&] { return done_.load() >= count; };
    if (ready() || spin(longest, ready)) return true;
    std::unique_lock<std::mutex> lock(door_);
    waiting_.fetch_add(1);
    finished_.wait(lock, ready);
    waiting_.fetch_sub(1);
    return false;
}

void Team::help(int thread) {
    const FlushDenormals flush;
    uint64_t seen = 0;  // the last run this helper has looked at
    for (;;) {
        const auto called = [&] { return over_.load() || run_of(next_.load()) != seen; };
        if (!spin(kIdleSpin, called)) {
            std::unique_lock<std::mutex> lock(door_);
            sleeping_.fetch_add(1);
            rung_.wait(lock, called);
            sleeping_.fetch_sub(1);
        }
        if (over_.load()) return;
        seen = run_of(next_.load());
        Clock::duration longest{0};
        take_tasks(thread, longest);
    }
}

// As many as the system gives: with fewer, or none, the work is done all the same.
void Team::hire() {
    hired_ = true;
    try {
        for (int thread = 1; thread < threads_; ++thread) helpers_.emplace_back([this, thread] { help(thread); });
    } catch (const std::exception&) {
    }
}

Team::~Team() {
    {
        std::lock_guard<std::mutex> lock(door_);
        over_.store(true);
        rung_.notify_all();
    }
    for (auto& helper : helpers_) helper.join();
}

// Systems like to wake a thread on the core of its waker, where it would wait for the caller to finish.
void Team::keep_off_my_core() {
#if defined(__linux__)
    const int core = sched_getcpu();
    if (core == avoided_core_) return;
    avoided_core_ = core;
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return;
    CPU_CLR(core, &cores);
    if (CPU_COUNT(&cores) == 0) return;
    for (auto& helper : helpers_) pthread_setaffinity_np(helper.native_handle(), sizeof cores, &cores);
#endif
}

}  // namespace td3
