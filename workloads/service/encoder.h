// The encoder of a service as something that runs: what its iterations take is learnt on an executor of its
// own, on the devices where it stands.
#pragma once

#include <memory>
#include <optional>

#include "workloads/perform/perform.h"
#include "workloads/serving/separation/encoder_pool.h"
#include "workloads/serving/system/service_figures.h"

namespace moebius {

class ServedEncoder {
 public:
  ServedEncoder(const Scenario& scenario, int pool, const StartExecutor& start);

  EncoderTimer& timer() { return timer_; }
  EncoderRules rules();  // where it stands apart
  // `beside`: what encoded on the devices of the language model, where it does not.
  EncoderFigures figures(const ServingSystem& system, const std::optional<EncodingCost::Totals>& beside);

 private:
  const EncoderPlan plan_;
  int hidden_;                // of the language model
  std::unique_ptr<Job> job_;  // the pool alone
  Layout layout_;
  Recorder recorder_;
  StartedExecutor engine_;
  EncoderTimer timer_;
};

}  // namespace moebius
