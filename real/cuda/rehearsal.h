// Kernels without a device: the bodies of launch.cuh on threads of the CPU. Tests implement streams as
// queues, each worked off by a thread of its own, so that work that is not ordered really runs in any order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "real/cuda/device.h"

namespace moebius::cuda {

// Appends work to a stream. Implemented where the rehearsal's device is.
void enqueue(Stream stream, std::function<void()> work);

// A team of one thread.
class Team {
 public:
  explicit Team(std::vector<float>& scratch) : scratch_(scratch) {}

  float* scratch() const { return scratch_.data(); }
  void sync() const {}
  template <class F>
  void each(std::int64_t count, const F& f) const {
    for (std::int64_t i = 0; i < count; ++i) f(i);
  }
  template <class T, class F>
  T sum(std::int64_t count, const F& f) const {
    T all = 0;
    each(count, [&](std::int64_t i) { all += f(i); });
    return all;
  }
  template <class F>
  float max(std::int64_t count, const F& f) const {
    float largest = -INFINITY;
    each(count, [&](std::int64_t i) { largest = std::max(largest, static_cast<float>(f(i))); });
    return largest;
  }

 private:
  std::vector<float>& scratch_;
};

template <class Body>
void launch_elements(Stream stream, std::int64_t count, const Body& body) {
  enqueue(stream, [=] {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  });
}

inline std::int64_t widest_scratch() {
  return 40960;  // 160 KiB, of an A100
}

template <class Body>
void launch_wide_teams(Stream stream, std::int64_t count, std::int64_t floats, const Body& body) {
  enqueue(stream, [=] {
    std::vector<float> scratch(floats, NAN);  // what a body reads it must have written
    for (std::int64_t i = 0; i < count; ++i) {
      Team team(scratch);
      body(team, i);
    }
  });
}

// A thread that waits stands for all multiprocessors.
template <class Wait>
void launch_occupiers(Stream stream, int count, const Wait& wait) {
  enqueue(stream, [=] {
    for (int i = 0; i < count; ++i) wait.arrive();
    while (!wait.is_over()) std::this_thread::yield();
  });
}

template <class Body>
void launch_teams(Stream stream, std::int64_t count, const Body& body) {
  launch_wide_teams(stream, count, kScratch, body);
}

}  // namespace moebius::cuda
