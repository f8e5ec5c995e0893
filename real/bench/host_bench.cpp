#include "real/bench/host_bench.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/bench/cache_walk.h"
#include "real/bench/host_case.h"
#include "real/bench/op_text.h"
#include "real/bench/repetitions.h"

namespace moebius {
namespace {

// The value of the first line "key : value" of a file of Linux's /proc; empty where there is none.
std::string proc_value(const char* file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind(key, 0) != 0 || colon == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "";
}

double elements(const OperandSpec& spec) {
  return static_cast<double>(spec.rows) * static_cast<double>(spec.columns);
}

// Attention puts the keys and values that are seen in order, and their gradients back.
double copied_elements(const OpOperands& operands) {
  if (operands.op.kind == OpKind::kAttention)
    return elements(operands.inputs[1]) + elements(operands.inputs[2]);
  if (operands.op.kind == OpKind::kAttentionGrad)
    return 2 * (elements(operands.inputs[2]) + elements(operands.inputs[3]));
  return 0;
}

double bytes_of(const OpOperands& operands) {
  double count = copied_elements(operands);
  for (const OperandSpec& spec : operands.inputs) count += elements(spec);
  for (const OperandSpec& spec : operands.outputs) count += elements(spec);
  return count * sizeof(float);
}

void require_memory(const CostQuery& query, const OpOperands& operands) {
  const double needed = bytes_of(operands), there = free_host_memory();
  if (there == 0 || needed <= 0.95 * there) return;
  throw run_error(fmt::format("{}: its operands take {} on the host, {} are free", describe(query),
                              to_text(Bytes{needed}), to_text(Bytes{there})));
}

class HostBench : public OpBench {
 public:
  HostBench(std::uint64_t seed, std::size_t hot_bytes, std::size_t cold_bytes)
      : patterns_(seed), hot_(hot_bytes), cold_(cold_bytes) {}

  OpMeasurement measure(const CostQuery& query, const StoppingRule& rule) override {
    OpMeasurement all{.repetitions = rule.most};
    double spread_seconds = 0;
    for (const CostQuery& part : parts_of(query)) {
      const OpMeasurement one = measure_part(part, rule);
      all.seconds += one.seconds;
      spread_seconds += one.spread * one.seconds;
      all.repetitions = std::min(all.repetitions, one.repetitions);
    }
    all.spread = all.seconds > 0 ? spread_seconds / all.seconds : 0;
    return all;
  }
  std::string device() const override {
    const std::string name = proc_value("/proc/cpuinfo", "model name");
    return fmt::format("host, one core of {}", name.empty() ? "an unnamed CPU" : name);
  }
  int cores() const override { return 1; }

 private:
  OpMeasurement measure_part(const CostQuery& query, const StoppingRule& rule) {
    OpOperands operands = operands_of(query);
    require_memory(query, operands);
    HostCase one(std::move(operands), patterns_);
    return repeat(rule, [&] {
      const CacheWalk& between = query.hot ? hot_ : cold_;
      if (!query.hot && between.bytes() == 0) one.flush();
      if (between.bytes() > 0) {
        between.walk();
        one.touch_first();
      }
      return one.execute();
    });
  }

  Patterns patterns_;
  CacheWalk hot_, cold_;  // cold without bytes: operands are flushed
};

}  // namespace

std::unique_ptr<OpBench> make_host_bench(std::uint64_t seed, std::size_t bytes_between) {
  return std::make_unique<HostBench>(seed, bytes_between, 0);
}

std::unique_ptr<OpBench> make_walking_bench(std::size_t hot_bytes, std::size_t cold_bytes) {
  return std::make_unique<HostBench>(1, hot_bytes, cold_bytes);
}

double free_host_memory() {
  const std::string text = proc_value("/proc/meminfo", "MemAvailable");
  return text.empty() ? 0 : 1024 * std::strtod(text.c_str(), nullptr);  // Linux counts in KiB
}

double host_bytes(const CostQuery& query) {
  double most = 0;
  for (const CostQuery& part : parts_of(query)) most = std::max(most, bytes_of(operands_of(part)));
  return most;
}

}  // namespace moebius
