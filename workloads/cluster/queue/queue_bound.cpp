#include "workloads/cluster/queue/queue_bound.h"

#include <algorithm>
#include <limits>

namespace moebius {

namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

struct FluidJob {
  Time arrival;
  double rate = 0;  // cards at its largest size
  double left = 0;  // card seconds
};

// Most over least card time of the same work, over sizes and the pools that it had.
double waste_of(const QueueInputs& inputs, const QueueJobCourse& job) {
  const JobShape& shape = inputs.plan.shapes[job.job.shape];
  double most = 1;
  for (std::size_t p = 0; shape.elastic && p < job.by_pool.size(); ++p) {
    double high = 0, low = kEndless;
    for (int size = 0; job.by_pool[p] > 0 && size < static_cast<int>(shape.sizes.size()); ++size) {
      const double cards =
          inputs.steps.at(job.job.shape, static_cast<int>(p), size).seconds * shape.sizes[size];
      if (cards <= 0) continue;
      high = std::max(high, cards);
      low = std::min(low, cards);
    }
    if (high > 0) most = std::max(most, high / low);
  }
  return most;
}

FluidJob fluid(const QueueInputs& inputs, const QueueJobCourse& job) {
  const JobShape& shape = inputs.plan.shapes[job.job.shape];
  const int cards = shape.elastic ? shape.sizes.back() : shape.sizes[job.job.size];
  const double taken = static_cast<double>(job.cards) * 1e-9 * waste_of(inputs, job);
  return {job.job.arrival, static_cast<double>(cards), job.done ? taken : kEndless};
}

}  // namespace

double attainable_allocation(const QueueInputs& inputs, const QueueCourse& course) {
  std::vector<FluidJob> jobs;
  for (const QueueJobCourse& job : course.jobs) {
    if (inputs.plan.shapes[job.job.shape].kind != JobClass::kInference) jobs.push_back(fluid(inputs, job));
  }
  CardAccounts all;
  for (const CardAccounts& pool : course.pools) all += pool;
  const double there = static_cast<double>(all.all() - all.of(CardItem::kBroken)) * 1e-9;
  double held = 0;
  const Time end = inputs.cluster.duration;
  for (Time hour; hour < end; hour = hour + kHour) {
    const Time until = std::min(hour + kHour, end);
    const double room = there * (until - hour).seconds() / end.seconds();
    double left =
        std::max(0.0, room - static_cast<double>(course.asked_of_services[hour.ns / kHour.ns]) * 1e-9);
    std::sort(jobs.begin(), jobs.end(),
              [](const FluidJob& a, const FluidJob& b) { return a.left * b.rate > b.left * a.rate; });
    for (FluidJob& job : jobs) {
      if (job.arrival >= until) continue;
      const double most = job.rate * (until - std::max(hour, job.arrival)).seconds();
      const double got = std::min({left, most, job.left});
      job.left -= got;
      left -= got;
    }
    held += room - left;
  }
  return there > 0 ? held / there : 0;
}

}  // namespace moebius
