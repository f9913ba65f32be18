#include "cpu/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace gnn_ibp {
namespace {

constexpr int kIoThreads = 32;  // reads in flight: enough to fill an NVMe queue, cheap while they sleep

// One call of parallel_for. Whoever takes a piece runs it; the caller waits for the pieces others took.
struct Job {
  Job(int64_t n, int64_t grain, const RangeBody& body) : n(n), grain(grain), body(body) {}

  const int64_t n, grain;
  const RangeBody& body;  // outlives the job's work: the caller waits before it returns
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::condition_variable finished;
  int64_t done = 0;  // iterations finished or given up, under `mutex`
  std::exception_ptr error;

  bool exhausted() const { return next.load(std::memory_order_relaxed) >= n; }

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= n) return;
      const int64_t end = std::min(n, begin + grain);
      std::exception_ptr caught;
      try {
        body(begin, end);
      } catch (...) {
        caught = std::current_exception();
      }
      std::lock_guard lock(mutex);
      if (caught && !error) error = caught;
      done += end - begin;
      if (done == n) finished.notify_all();
    }
  }

  void wait() {
    std::unique_lock lock(mutex);
    finished.wait(lock, [this] { return done == n; });
    if (error) std::rethrow_exception(error);
  }
};

class Pool {
 public:
  explicit Pool(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }

  void run(int num_workers, int64_t n, int64_t grain, const RangeBody& body) {
    auto job = std::make_shared<Job>(n, grain, body);
    {
      std::lock_guard lock(mutex_);
      start(num_workers);
      jobs_.push_back(job);
    }
    const int64_t pieces = (n + grain - 1) / grain;
    for (int64_t i = 0; i < std::min<int64_t>(num_workers, pieces - 1); ++i) wake_.notify_one();
    job->work();
    job->wait();
    std::lock_guard lock(mutex_);
    std::erase(jobs_, job);
  }

 private:
  // Has so many workers, or as many as the system gives: the caller does what nobody else takes.
  void start(int num_workers) {
    try {
      while (static_cast<int>(workers_.size()) < num_workers)
        workers_.emplace_back([this] { serve(); }).detach();
    } catch (const std::system_error&) {
    }
  }

  void serve() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] {
          while (!jobs_.empty() && jobs_.front()->exhausted()) jobs_.pop_front();
          return !jobs_.empty();
        });
        job = jobs_.front();
      }
      job->work();
    }
  }

  const pid_t pid_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::deque<std::thread> workers_;
};

// A child made by fork() has the parent's pool but none of its threads, and its mutex may be held for ever:
// the pool is left as it is, and a new one takes its place. Pools are never destroyed: their threads end
// with the process.
Pool& pool(std::atomic<Pool*>& current) {
  const pid_t pid = getpid();
  Pool* old = current.load(std::memory_order_acquire);
  while (!old || old->pid() != pid) {
    auto* fresh = new Pool(pid);
    if (current.compare_exchange_strong(old, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;  // another thread was first; `old` is its pool
  }
  return *old;
}

std::atomic<Pool*> compute_pool{nullptr};
std::atomic<Pool*> io_pool{nullptr};
std::atomic<int> num_threads_asked{0};

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

void run(std::atomic<Pool*>& current, int threads, int64_t n, int64_t grain, const RangeBody& body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(1, grain);
  if (threads <= 1 || n <= grain) {
    for (int64_t begin = 0; begin < n; begin += grain) body(begin, std::min(n, begin + grain));
    return;
  }
  pool(current).run(threads - 1, n, grain, body);
}

}  // namespace

void parallel_for(int64_t n, int64_t grain, const RangeBody& body) {
  run(compute_pool, num_threads(), n, grain, body);
}

void parallel_for_io(int64_t n, int64_t grain, const RangeBody& body) {
  run(io_pool, kIoThreads, n, grain, body);
}

void set_num_threads(int num_threads) { num_threads_asked.store(std::max(1, num_threads)); }

int num_threads() {
  const int asked = num_threads_asked.load();
  return asked > 0 ? asked : processors();
}

int io_threads() { return kIoThreads; }

}  // namespace gnn_ibp
