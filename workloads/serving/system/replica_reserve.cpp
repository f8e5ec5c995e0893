// What admission leaves free in a replica's cache for tokens that running sequences have still to generate.
#include <algorithm>

#include "workloads/serving/system/replica.h"

namespace moebius {

// SGLang's SGLANG_RETRACT_DECODE_STEPS (environ.py): tokens that each sequence is to get, at least, before
// another one has to go.
constexpr std::int64_t kStepsBehindRetraction = 20;

std::int64_t Replica::furthest(std::int64_t tokens, std::int64_t left) const {
  if (rules_.newcomer_reserve > 0) left = std::min<std::int64_t>(left, rules_.newcomer_reserve);
  return held_by(tokens + left + rules_.speculation.drafts);
}

std::int64_t Replica::to_come(std::int64_t tokens, std::int64_t left) const {
  return furthest(tokens, left) - held_by(tokens);
}

// Those that decode by the share, newcomers whole where that is asked for.
double Replica::kept_for_own() const {
  if (rules_.newcomer_reserve == 0) return reserve_ * static_cast<double>(to_come_);
  return reserve_ * static_cast<double>(to_come_ - newcomers_to_come_) +
         static_cast<double>(newcomers_to_come_);
}

double Replica::kept_for_others() const {
  double pages = kept_for_own();
  for (const Replica* other : beside_) pages += other->kept_for_own();
  return pages;
}

// Alone it needs none, nor where others decode.
std::int64_t Replica::kept_free(std::int64_t tokens, std::int64_t left, bool newcomer) const {
  std::int64_t others = occupied_, pages = to_come_ + to_come(tokens, left);
  for (const Replica* other : beside_) others += other->occupied_, pages += other->to_come_;
  if (others == 0 || rules_.hands_over) return 0;
  if (rules_.newcomer_reserve == 0) return static_cast<std::int64_t>(reserve_ * static_cast<double>(pages));
  const double share = newcomer ? 1 : reserve_;
  return static_cast<std::int64_t>(kept_for_others() + share * static_cast<double>(to_come(tokens, left)));
}

// SGLang does so in a loop without a batch (self_check_during_idle()): replicas that share experts have
// one, if of nobody, as long as any of them has work, a pipeline as long as any of its lanes has.
void Replica::begin_reserve() {
  const auto is_idle = [](const Replica* other) { return other->idle(); };
  if (!std::all_of(beside_.begin(), beside_.end(), is_idle)) return;
  reserve_ = std::max(rules_.output_reserve, rules_.reserve_decay > 0 ? rules_.first_reserve : 0);
  for (Replica* other : beside_) other->reserve_ = reserve_;
}

// An iteration in which sequences decode: as SGLang's update_running_batch() does. What driving out leaves
// may be less than where it would have ended; the next step brings it there.
void Replica::follow_reserve(bool drove_out) {
  if (rules_.reserve_decay == 0 || decoding_.empty()) return;
  if (!drove_out) {
    const double step = std::max(0.0, rules_.first_reserve - rules_.output_reserve) / rules_.reserve_decay;
    reserve_ = std::max(reserve_ - step, rules_.output_reserve);
    return;
  }
  std::int64_t generated = 0, most = 1;
  for (const Decoding& sequence : decoding_) {
    generated += sequence.generated + kStepsBehindRetraction;
    most += sequence.generated + sequence.left;
  }
  reserve_ = std::min(1.0, static_cast<double>(generated) / static_cast<double>(most));
}

}  // namespace moebius
