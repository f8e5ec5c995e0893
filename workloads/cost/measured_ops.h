// Ops measured on a device at hand: each one once, however often it is asked for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workloads/cost/measuring_facts.h"
#include "workloads/cost/op_bench.h"
#include "workloads/cost/op_journal.h"

namespace moebius {

// The device, and what can be said of it before anything is measured.
struct MeasuringDevice {
  std::unique_ptr<OpBench> bench;
  double memory_bytes = 0;                             // free; 0: not known
  std::function<double(const CostQuery&)> bytes = {};  // that an op takes there; empty: not known
};

class MeasuredOps {
 public:
  // `journal`: a file that is read now and written after each measurement; empty: none. What it says of other
  // devices is kept and not used. Errors are load_journal's.
  MeasuredOps(MeasuringDevice device, std::string journal);

  // Measures what is not known yet. Errors are OpBench::measure's.
  OpMeasurement get(const OpKey& key);
  bool knows(const OpKey& key) const { return known_.count(to_text(key)) > 0; }

  // Measures the unknown ones of `keys`, in their order, with a progress bar on a terminal.
  void measure_all(const std::vector<OpKey>& keys);

  // Expected wall seconds of measuring the unknown ones of `keys`: FLOPs (attention's apart) and bytes at the
  // rates that three quick probes find.
  double estimate(const std::vector<OpKey>& keys);
  // Sentences about what will take long or not fit; empty: nothing worth a word.
  std::string note(const std::vector<OpKey>& keys);

  int cores() const { return device_.bench->cores(); }
  std::string device() const { return device_.bench->device(); }
  MeasuringFacts facts() const;

 private:
  struct Known {
    OpMeasurement measured;
    bool from_journal = false, used = false;
  };
  double once(const CostQuery& query);
  void probe();

  MeasuringDevice device_;
  std::string journal_;
  std::vector<JournalLine> lines_;
  std::map<std::string, Known> known_;  // by the key's text
  double seconds_ = 0;
  double flop_rate_ = 0, attention_rate_ = 0, byte_rate_ = 0;  // of the probes; 0: not probed yet
};

}  // namespace moebius
