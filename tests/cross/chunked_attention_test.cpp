// Attention in chunks has the numbers that it has whatever is cut, by ranks, microbatches or the end of a
// sequence.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/learning_curve.h"

namespace moebius {
namespace {

// Without experts, whose choice is by the place of a token in its microbatch.
TrainingJob chunked_job(AttentionKind attention, std::int64_t length, int chunk) {
  Model model = small_model(attention);
  model.experts = {};
  model.first_dense = model.layers;
  model.attention_chunk = chunk;
  TrainingJob job = small_job(model);
  job.workload.sequence_length = length;
  job.workload.steps = 3;
  return job;
}

}  // namespace

TEST_CASE("context ranks that hold whole chunks learn what one rank learns, and gather no keys") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    TrainingJob job = chunked_job(attention, 16, 4);
    const std::vector<double> one = learning_curve<double>(job, true);
    job.plan.cp = 2;
    check_same_curve(one, learning_curve<double>(job, true));
    job.plan.cp = 4;
    job.workload.micro_batch = 2;
    check_same_curve(one, learning_curve<double>(job, true));
  }
}

TEST_CASE("a chunk that the end of a sequence cuts off sees itself alone, however many sequences there are") {
  TrainingJob job = chunked_job(AttentionKind::kGqa, 14, 4);
  const std::vector<double> one = learning_curve<double>(job, true);
  job.workload.micro_batch = 2;
  check_same_curve(one, learning_curve<double>(job, true));
  job.model.attention_chunk = 0;
  CHECK(learning_curve<double>(job, true) != one);
  // A window of as many tokens reaches over the beginning of a chunk.
  job.model.sliding_window = 4;
  CHECK(learning_curve<double>(job, true) != one);
}

// A packed sequence is cut by its own length, which is another way to the same numbers: one row of 14 tokens.
TEST_CASE("sequences in chunks that do not divide them learn what they learn packed") {
  TrainingJob job = chunked_job(AttentionKind::kGqa, 14, 4);
  job.workload.global_batch = 1;
  job.workload.lengths = SequenceLengths{.least = 14, .most = 14};
  const TrainingJob packed = job;
  job.workload.lengths.reset();
  Training plain(job), cut(packed);
  const auto attention_of = [](Training& training) {
    const Submission forward = *training.next({});
    double flops = 0;
    for (const Op& op : forward.fragment->ops)
      if (op.kind == OpKind::kAttention) flops += op_flops(op, *forward.fragment).value;
    return flops;
  };
  // Chunks of 4, 4, 4 and 2 tokens: 3 x 4 x 5 / 2 + 2 x 3 / 2 = 33 pairs, each two products of 8 columns for
  // each of 4 heads, in two layers.
  CHECK(attention_of(plain) == 33.0 * 2 * 2 * 8 * 4 * 2);
  CHECK(attention_of(cut) == 33.0 * 2 * 2 * 8 * 4 * 2);
}

}  // namespace moebius
