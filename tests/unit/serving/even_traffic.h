// A service whose iterations take what their rows say, and requests of equal lengths for it.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

// So many microseconds an iteration and for each row of the fullest replica.
class LinearCost : public StepCost {
 public:
  LinearCost(double iteration, double row) : iteration_(iteration), row_(row) {}
  double seconds(std::span<const StepShape> replicas) override {
    std::int64_t most = 0;
    for (const StepShape& shape : replicas) most = std::max(most, shape.rows());
    return 1e-6 * (iteration_ + row_ * static_cast<double>(most));
  }

 private:
  double iteration_, row_;
};

// Requests of equal lengths, one every `gap`; each four share their prompt.
class EvenTraffic : public TrafficStream {
 public:
  EvenTraffic(int requests, Time gap, int input, int output, int images = 0)
      : left_(requests), gap_(gap), input_(input), output_(output), images_(images) {}
  bool next(TrafficRequest& request) override {
    if (left_-- == 0) return false;
    request = {};
    request.arrival = now_;
    now_ += gap_;
    request.input_tokens = input_;
    request.output_tokens = output_;
    request.images = images_;
    request.block_tokens = 64;
    for (int i = 0; i * 64 < input_; ++i) request.blocks.push_back(left_ / 4 * 1000 + i);
    return true;
  }

 private:
  int left_;
  Time gap_, now_;
  int input_, output_, images_;
};

struct Asked {
  int requests = 400;
  Time gap = {10'000'000};
  int input = 640, output = 20, images = 0;
};

struct Run {
  ServingFigures figures;
  std::vector<ClassFigures> classes;
  std::vector<PoolFigures> pools;
  double mean_present = 0;  // requests, over the time
  Time span;
  ForecastFigures forecasts;
};

Run run(const SystemRules& rules, const Asked& asked = {}) {
  std::unique_ptr<RequestFeed> feed = std::make_unique<OpenFeed>(
      std::make_unique<EvenTraffic>(asked.requests, asked.gap, asked.input, asked.output, asked.images));
  if (rules.classes.size() > 1) feed = classified(std::move(feed), rules.classes, 7);
  ServingSystem system(rules, *feed);
  double area = 0;
  Time before;
  std::int64_t present = 0;
  while (system.advance()) {
    area += static_cast<double>(present) * (system.now() - before).seconds();
    before = system.now();
    present = system.waiting();
  }
  CHECK(system.waiting() == 0);
  return {system.metrics().figures(),
          system.metrics().classes(),
          system.pools(),
          area / before.seconds(),
          system.span(),
          system.forecasts()};
}

std::int64_t outputs(const Run& run, std::size_t pool) {
  std::int64_t sum = 0;
  for (const ClassTokens& of : run.pools[pool].tokens) sum += of.output;
  return sum;
}

RequestClass promised(double ttft, double tpot = 0) {
  RequestClass of;
  of.goal = {time_from_seconds(ttft), time_from_seconds(tpot)};
  return of;
}

}  // namespace
}  // namespace moebius
