// A bench that knows the answer: seconds by a formula, and every question written down.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workloads/cost/measured_ops.h"

namespace moebius {

using Formula = std::function<double(const CostQuery&)>;

class FakeBench : public OpBench {
 public:
  FakeBench(Formula formula, std::shared_ptr<std::vector<std::string>> asked, int cores = 1)
      : formula_(std::move(formula)), asked_(std::move(asked)), cores_(cores) {}

  OpMeasurement measure(const CostQuery& query, const StoppingRule& rule) override {
    asked_->push_back(to_text(key_of(query, query.cores)));
    return {.seconds = formula_(query), .spread = 0.01, .repetitions = rule.least};
  }
  std::string device() const override { return "a fake"; }
  int cores() const override { return cores_; }

 private:
  Formula formula_;
  std::shared_ptr<std::vector<std::string>> asked_;
  int cores_;
};

// Whatever stands on it, with what it was asked for; the three quick probes of its rates not counted.
struct FakeDevice {
  std::shared_ptr<std::vector<std::string>> asked = std::make_shared<std::vector<std::string>>();
  Formula formula;
  int cores = 1;

  explicit FakeDevice(Formula seconds, int its_cores = 1) : formula(std::move(seconds)), cores(its_cores) {}
  MeasuringDevice open() const { return {.bench = std::make_unique<FakeBench>(formula, asked, cores)}; }
  int measured() const { return std::max(0, static_cast<int>(asked->size()) - 3); }
};

}  // namespace moebius
