#include "workloads/training/packing.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "hw/error.h"
#include "workloads/routing/routing.h"
#include "workloads/schedule/local_batch.h"

namespace moebius {
namespace {

constexpr std::uint64_t kLengthStream = 0x6c656e67;  // what the random numbers are for

// A standard normal number (Box and Muller, 1958).
double normal(std::uint64_t bits) {
  const double radius = std::sqrt(-2 * std::log(1 - random_unit(random_bits(bits, 1))));
  return radius * std::cos(2 * std::numbers::pi * random_unit(random_bits(bits, 2)));
}

std::int64_t length_of(const SequenceLengths& lengths, std::uint64_t bits, std::int64_t longest) {
  double length = 0;
  switch (lengths.law) {
    case LengthLaw::kUniform:
      length = lengths.least + std::floor(random_unit(bits) * (lengths.most - lengths.least + 1));
      break;
    case LengthLaw::kLognormal:
      length = std::round(std::min(lengths.median * std::exp(lengths.sigma * normal(bits)), 1e15));
      break;
  }
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(length), 1, longest);
}

void add_sequence(Batch& batch, std::int32_t request, std::int64_t length, double prompt_share) {
  BatchSequence sequence;
  sequence.request = request;
  sequence.count = static_cast<std::int32_t>(length);
  sequence.prompt = static_cast<std::int32_t>(std::floor(prompt_share * static_cast<double>(length)));
  batch.sequences.push_back(sequence);
}

}  // namespace

BatchPtr cut_in_chunks(const TrainingWorkload& workload, int chunk) {
  const std::int64_t length = workload.sequence_length;
  if (chunk == 0 || length <= chunk || length % chunk == 0) return nullptr;
  Batch whole{.page_tokens = 0, .sequences = {}};
  for (std::int32_t i = 0; i < workload.micro_batch; ++i) add_sequence(whole, i, length, 0);
  return local_batch(std::make_shared<const Batch>(std::move(whole)), chunk);
}

BatchPtr pack(const TrainingWorkload& workload, const PackedRows& rows) {
  CHECK(workload.lengths.has_value(), "sequences without lengths");
  const SequenceLengths& lengths = *workload.lengths;
  const std::int64_t room = workload.sequence_length;
  auto batch = std::make_shared<Batch>();
  batch->page_tokens = 0;
  const std::uint64_t stream = random_bits(workload.seed, kLengthStream, rows.step, rows.index);
  std::int32_t drawn = 0;
  std::int64_t length = length_of(lengths, random_bits(stream, drawn), room);
  for (std::int64_t row = 0; row < workload.micro_batch; ++row) {
    std::int64_t used = 0;
    for (; used + length <= room; length = length_of(lengths, random_bits(stream, drawn), room)) {
      add_sequence(*batch, drawn++, length, lengths.prompt_share);
      used += length;
    }
    if (used < room) add_sequence(*batch, -1, room - used, 0);
  }
  return batch;
}

bool is_counted(const BatchSequence& sequence, std::int32_t position, int ahead) {
  const std::int32_t label = position + ahead;
  return sequence.request >= 0 && label >= sequence.prompt && label < sequence.length();
}

void PackedTokens::add(const Batch& batch) {
  rows += static_cast<double>(batch.rows());
  for (const BatchSequence& sequence : batch.sequences) {
    if (sequence.request < 0) continue;
    const double length = sequence.length();
    real += length;
    squares += length * length;
    counted += sequence.length() - std::max(sequence.prompt, 1);
    ++sequences;
  }
}

namespace {

PackedTokens tokens_of_replica(const TrainingWorkload& workload, const TrainingPlan& plan, PackedRows rows) {
  PackedTokens sum;
  const int replica = rows.index;
  for (int i = 0; i < workload.num_microbatches(plan); ++i) {
    rows.index = i * plan.dp + replica;
    sum.add(*pack(workload, rows));
  }
  return sum;
}

void add(const PackedTokens& one, PackedTokens& sum) {
  sum.rows += one.rows, sum.real += one.real, sum.counted += one.counted;
  sum.sequences += one.sequences, sum.squares += one.squares;
}

}  // namespace

int heaviest_replica(const TrainingWorkload& workload, const TrainingPlan& plan, int step) {
  int heaviest = 0;
  double most = -1;
  for (int replica = 0; replica < plan.dp; ++replica) {
    const double squares = tokens_of_replica(workload, plan, {step, replica}).squares;
    if (squares > most) most = squares, heaviest = replica;
  }
  return heaviest;
}

PackedTokens packed_tokens(const TrainingWorkload& workload, const TrainingPlan& plan, int step) {
  PackedTokens sum;
  for (int replica = 0; replica < plan.dp; ++replica)
    add(tokens_of_replica(workload, plan, {step, replica}), sum);
  return sum;
}

PackedTokens packed_tokens(const TrainingWorkload& workload, const TrainingPlan& plan) {
  PackedTokens sum;
  for (int step = workload.first_step; step < workload.steps; ++step)
    add(packed_tokens(workload, plan, step), sum);
  return sum;
}

}  // namespace moebius
