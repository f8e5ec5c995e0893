// One step of reinforcement learning, phase after phase on one cluster: sequences are generated (rollout),
// scored by forward passes of the reference and of the reward model, trained on, and the new weights are sent
// to all who generate.
#pragma once

#include <cstdint>

namespace moebius {

struct Reinforcement {
  std::int64_t prompts = 0, samples = 0;  // prompts x samples sequences are generated
  std::int64_t response_tokens = 0;       // of each, mean; the rest of the sequence length is its prompt
  double rollout_rate = 0;  // generated tokens/s of a device, given; 0: the rollout is served, and simulated
  bool reference = true;    // the policy's first weights score each sequence
  bool reward = false;      // a reward model scores each sequence
  bool sync = true;         // each weight is broadcast to all ranks

  std::int64_t sequences() const { return prompts * samples; }
};

enum class RlPhase : std::uint8_t { kRollout, kReference, kReward, kSync };  // beside training

struct PhaseTime {
  RlPhase phase = RlPhase::kRollout;
  double seconds = 0;
};

// Seconds of one step; a phase that is not there takes none.
struct ReinforcementFigures {
  double rollout_s = 0, reference_s = 0, reward_s = 0, training_s = 0, sync_s = 0;
  bool rollout_given = false;  // by its rate: nothing of it was simulated
  double tokens = 0;           // of prompts and responses
  double response_tokens = 0;
  std::int64_t updates = 1;  // steps of training, each with a batch of the sequences

  double scoring_s() const { return reference_s + reward_s; }
  double step_time_s() const { return rollout_s + scoring_s() + training_s + sync_s; }
};

}  // namespace moebius
