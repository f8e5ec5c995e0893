// How a replica's sequences decode: pages as they grow, who makes room for others, tokens that come.
#include <algorithm>

#include "workloads/routing/random_stream.h"
#include "workloads/serving/system/replica.h"

namespace moebius {
namespace {

void add_gap(std::vector<TokenGap>& gaps, Time gap) {
  if (!gaps.empty() && gaps.back().gap == gap) {
    ++gaps.back().count;
  } else {
    gaps.push_back({gap, 1});
  }
}

}  // namespace

void Replica::plan_decode() {
  swap_in();
  make_room_for_growth();
  const std::int32_t rows = 1 + rules_.speculation.drafts;
  shape_.decode_sequences = static_cast<std::int32_t>(decoding_.size());
  shape_.decode_tokens = shape_.decode_sequences * rows;
  shape_.decode_context = context_ + shape_.decode_tokens;
}

// Guesses hold one after the other, until one does not: Leviathan et al. 2023, section 2.
std::int32_t Replica::tokens_of(const Decoding& sequence) const {
  std::int32_t tokens = 1;
  if (rules_.speculation.drafts > 0) {
    const std::uint64_t key = rules_.seed ^ RandomStream::finalise(std::uint64_t{sequence.number});
    RandomStream stream(RandomStream::finalise(key + RandomStream::kGolden * sequence.left));
    while (tokens <= rules_.speculation.drafts && stream.unit() < rules_.speculation.holds(tokens - 1))
      ++tokens;
  }
  return std::min(tokens, sequence.left);
}

// What was adopted while the iteration went on was no part of it: it stands behind those that were.
void Replica::complete_decode(Time end, StepOutcome& outcome) {
  const std::int32_t rows = 1 + rules_.speculation.drafts;
  const auto planned = decoding_.begin() + shape_.decode_sequences;
  std::size_t kept = 0;
  for (auto at = decoding_.begin(); at != planned; ++at) {
    Decoding& sequence = *at;
    const std::int32_t tokens = tokens_of(sequence);
    drafts_.guessed += rules_.speculation.drafts;
    drafts_.held += tokens - 1;
    add_gap(outcome.gaps, end - sequence.since);
    if (tokens > 1) outcome.gaps.push_back({Time{}, tokens - 1});
    outcome.tokens += tokens;
    const std::int64_t counted = sequence.left;
    context_ += sequence.left == tokens ? -std::int64_t{sequence.context} : tokens;
    sequence.context += tokens;
    sequence.left -= tokens;
    sequence.generated += tokens;
    sequence.since = end;
    if (tokens < rows) {  // guesses that did not hold, or of which no more were asked for
      const std::int64_t back =
          held_by(std::int64_t{sequence.context} - tokens + rows) - held_by(sequence.context);
      held_ -= back;
      to_come_ += back;
    }
    if (rules_.newcomer_reserve > 0 && counted > rules_.newcomer_reserve)  // a token further ahead counts now
      to_come_ += furthest(sequence.context, sequence.left) - furthest(sequence.context - tokens, counted);
    if (sequence.left == 0) {
      outcome.finished.push_back(sequence.id);
      leave(sequence);
    } else {
      if (&decoding_[kept] != &sequence) decoding_[kept] = sequence;
      ++kept;
    }
  }
  decoding_.erase(decoding_.begin() + static_cast<std::ptrdiff_t>(kept), planned);
}

}  // namespace moebius
