// What iterations take where the layers of an instance stand on several stages. As many batches as there are
// stages go through them one behind the other, each of sequences of its own that stay in it (SGLang's
// running_mbs; vLLM and TensorRT-LLM fill a batch with what no other has under way, which is the same where
// all are full): a lane each, which is an Instance to the rest of the system. A batch is decided when the
// lane's last one has come out of the last stage, or, if that was parts of prompts that go on, out of the
// first: parts of one prompt follow each other. It waits before a stage for the batches that are ahead of it.
#pragma once

#include <functional>
#include <vector>

#include "workloads/serving/system/step.h"

namespace moebius {

class PipelineCost : public StepCost {
 public:
  struct Stage {
    StepCost* cost = nullptr;                          // of its layers; outlives the pipeline
    std::function<double(std::int64_t rows)> hand_on;  // seconds of so many rows of a replica to the next one
  };
  // The last stage hands tokens back to the first.
  explicit PipelineCost(std::vector<Stage> stages) : stages_(std::move(stages)), free_(stages_.size()) {
    busy_.resize(stages_.size());
  }

  void begin(Time now, bool gives_tokens) override { now_ = now, gives_tokens_ = gives_tokens; }
  void starts(Time at) override { now_ = at; }
  // From then until the lane's next batch can be decided. Stages are taken in the order of calls.
  double seconds(std::span<const StepShape> replicas) override;
  StepStalls stalls(std::span<const StepShape> replicas, double seconds) override;
  double balancedness() const override { return stages_.front().cost->balancedness(); }
  // With as many equal batches under way.
  double forecast(std::span<const StepShape> replicas) override;

  struct Totals {
    std::vector<double> busy;     // seconds, by stage
    double waited = 0;            // of batches, before stages that others were in
    double handed_on = 0;         // of batches, on their way between stages
    double batches = 0, all = 0;  // their number, and seconds from their begins to their ends
    double prompts = 0;           // of `busy`, for prompts, by rows where a batch has both
    void add(const Totals& other);
  };
  Totals totals() const { return {busy_, waited_, handed_on_, batches_, all_, prompts_}; }

 private:
  std::vector<Stage> stages_;
  std::vector<double> free_;  // since when each stage is, in seconds
  std::vector<double> busy_;
  Time now_;
  bool gives_tokens_ = true;
  double waited_ = 0, handed_on_ = 0, batches_ = 0, all_ = 0, prompts_ = 0;
};

}  // namespace moebius
