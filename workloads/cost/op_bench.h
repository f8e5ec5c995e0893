// Times one op on a device at hand, standing alone. The devices are real/'s; what needs measured costs
// (calibration, emulation) is given one.
#pragma once

#include <string>

#include "workloads/cost/cost_source.h"

namespace moebius {

// When enough has been measured: the median of repetitions after a warm-up, until its standard error is below
// `precision` of it or one of the limits is reached.
struct StoppingRule {
  double precision = 0.01;
  int least = 5, most = 200;  // repetitions
  double most_seconds = 1;  // of one op, warm-up included; at least `least` repetitions are made all the same
};

struct OpMeasurement {
  double seconds = 0;  // median of one execution
  double spread = 0;   // half of the distance between the quartiles, over the median
  int repetitions = 0;
};

class OpBench {
 public:
  virtual ~OpBench() = default;
  // Operands are made anew (random numbers in the formats of the query, as the executors hold them), the
  // caches are flushed between repetitions unless query.hot, and nothing else runs. `query.cores`: a device
  // that can, lets others hold the rest; 0: all. run_error where the device has no implementation or too
  // little memory; the sentence says which op.
  virtual OpMeasurement measure(const CostQuery& query, const StoppingRule& rule) = 0;
  virtual std::string device() const = 0;  // its name, for reports and as the key of caches
  virtual int cores() const = 0;           // host: 1
  // Itself as catalogs write names, "h100-80gb-hbm3"; empty: no accelerator.
  virtual std::string chip() const { return ""; }
};

}  // namespace moebius
