// Processes that are threads of one: what a run says to another goes through queues, so that everything but
// MPI itself is as it is between processes. Messages of different senders overtake each other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "real/processes/processes.h"
#include "workloads/routing/routing.h"

namespace moebius {

class ThreadTransport : public Transport {
 public:
  // What all of them share.
  struct Post {
    struct Box {
      std::mutex mutex;
      std::condition_variable changed;
      std::vector<std::deque<ByteString>> from;  // by sender, oldest first
      bool closing = false;
    };
    explicit Post(int count) : boxes(count) {
      for (Box& box : boxes) box.from.resize(count);
    }
    std::deque<Box> boxes;
  };

  ThreadTransport(std::shared_ptr<Post> post, int self) : post_(std::move(post)), self_(self) {}
  ~ThreadTransport() override {
    {
      const std::scoped_lock lock(box().mutex);
      box().closing = true;
      box().changed.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  int self() const override { return self_; }
  int count() const override { return static_cast<int>(post_->boxes.size()); }
  std::string name() const override { return "threads"; }
  void send(int to, ByteString message) override {
    Post::Box& there = post_->boxes[to];
    const std::scoped_lock lock(there.mutex);
    there.from[self_].push_back(std::move(message));
    there.changed.notify_all();
  }
  void start(Deliver deliver) override {
    thread_ = std::thread([this, deliver] { run(deliver); });
  }

 private:
  Post::Box& box() { return post_->boxes[self_]; }

  void run(const Deliver& deliver) {
    std::unique_lock lock(box().mutex);
    for (std::uint64_t turn = 0;; ++turn) {
      const auto from = static_cast<int>(random_bits(1, self_, turn) % count());
      const auto waits = [](const auto& queue) { return !queue.empty(); };
      box().changed.wait(
          lock, [&] { return box().closing || std::any_of(box().from.begin(), box().from.end(), waits); });
      if (box().closing) return;
      if (box().from[from].empty()) continue;
      const ByteString message = std::move(box().from[from].front());
      box().from[from].pop_front();
      lock.unlock();
      deliver(from, message);
      lock.lock();
    }
  }

  const std::shared_ptr<Post> post_;
  const int self_;
  std::thread thread_;
};

// Calls body(processes) in each of `count` processes; each comes to the farewell with what it threw. Returns
// what each says it failed with.
inline std::vector<std::optional<Error>> in_processes(int count,
                                                      const std::function<void(Processes&)>& body) {
  const auto post = std::make_shared<ThreadTransport::Post>(count);
  std::vector<std::optional<Error>> failures(count);
  std::vector<std::thread> threads;
  for (int self = 0; self < count; ++self) {
    threads.emplace_back([&, self] {
      Processes processes(std::make_unique<ThreadTransport>(post, self));
      std::optional<Error> failure;
      try {
        body(processes);
      } catch (const Error& error) {
        failure = error;
      }
      failures[self] = processes.farewell(failure);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

}  // namespace moebius
