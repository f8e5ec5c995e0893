// Sequences of unlike length packed into rows.
#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "small_job.h"
#include "workloads/schedule/work.h"
#include "workloads/training/packing.h"

using namespace moebius;

namespace {

TrainingWorkload packed_work(SequenceLengths lengths, std::int64_t row, std::int64_t rows) {
  TrainingWorkload work;
  work.sequence_length = row;
  work.micro_batch = rows;
  work.global_batch = rows;
  work.lengths = lengths;
  return work;
}

SequenceLengths uniform(double least, double most) {
  return {.law = LengthLaw::kUniform, .least = least, .most = most};
}

double attention_flops(const Fragment& fragment, OpKind kind) {
  double sum = 0;
  for (const Op& op : fragment.ops)
    if (op.kind == kind) sum += op_flops(op, fragment).value;
  return sum;
}

const Fragment& first_of(const std::vector<Submission>& all, Phase phase) {
  return *std::find_if(all.begin(), all.end(), [&](const Submission& s) {
            return s.fragment->phase == phase;
          })->fragment;
}

}  // namespace

TEST_CASE("rows are full, and no sequence lies across two of them") {
  const TrainingWorkload work = packed_work(uniform(3, 40), 64, 5);
  for (int index = 0; index < 20; ++index) {
    const BatchPtr batch = pack(work, {0, index});
    CHECK(find_fault(*batch) == "");
    CHECK(batch->rows() == 5 * 64);
    std::int32_t at = 0, requests = 0;
    for (const BatchSequence& sequence : batch->sequences) {
      CHECK(at / 64 == (at + sequence.count - 1) / 64);
      at += sequence.count;
      if (sequence.request < 0) continue;
      CHECK(sequence.request == requests++);
      CHECK((sequence.count >= 3 && sequence.count <= 40));
    }
  }
}

// The next sequence begins a new row only when it does not fit behind the last one.
TEST_CASE("padding is shorter than the sequence that comes after it") {
  const BatchPtr batch = pack(packed_work(uniform(3, 40), 64, 50), {0, 0});
  for (std::size_t i = 0; i + 1 < batch->sequences.size(); ++i) {
    if (batch->sequences[i].request < 0) CHECK(batch->sequences[i].count < batch->sequences[i + 1].count);
  }
}

TEST_CASE("lengths follow their law: a uniform mean and a lognormal median") {
  const auto lengths = [](const SequenceLengths& law) {
    std::vector<std::int32_t> all;
    const BatchPtr batch = pack(packed_work(law, 4096, 400), {0, 0});
    for (const BatchSequence& s : batch->sequences)
      if (s.request >= 0) all.push_back(s.count);
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto even = lengths(uniform(100, 300));
  CHECK(std::accumulate(even.begin(), even.end(), 0.0) / static_cast<double>(even.size()) ==
        Approx(200).epsilon(0.01));
  const auto skew = lengths({.law = LengthLaw::kLognormal, .median = 200, .sigma = 0.8});
  CHECK(skew[skew.size() / 2] == Approx(200).epsilon(0.05));
  // exp(sigma^2 / 2) = 1.377 times the median.
  CHECK(std::accumulate(skew.begin(), skew.end(), 0.0) / static_cast<double>(skew.size()) ==
        Approx(275).epsilon(0.05));
}

TEST_CASE("the same key packs the same, another microbatch and another step do not") {
  const TrainingWorkload work = packed_work(uniform(3, 40), 64, 5);
  const auto counts = [&](const PackedRows& rows) {
    std::vector<std::int32_t> all;
    const BatchPtr batch = pack(work, rows);
    for (const BatchSequence& s : batch->sequences) all.push_back(s.count);
    return all;
  };
  CHECK(counts({1, 2}) == counts({1, 2}));
  CHECK(counts({1, 2}) != counts({1, 3}));
  CHECK(counts({1, 2}) != counts({2, 2}));
}

// Positions 0..9 predict tokens 1..10; of ten tokens the first four are the prompt: tokens 4..9 count.
TEST_CASE("the loss counts tokens behind the prompt and inside the sequence") {
  const BatchSequence sequence{.request = 0, .prompt = 4, .past = 0, .count = 10, .pages = {}};
  std::vector<int> counted;
  for (int position = 0; position < 10; ++position)
    if (is_counted(sequence, position, 1)) counted.push_back(position);
  CHECK(counted == std::vector<int>{3, 4, 5, 6, 7, 8});
  CHECK_FALSE(is_counted({.request = -1, .prompt = 0, .past = 0, .count = 10, .pages = {}}, 3, 1));
}

// Causal pairs of each sequence by itself, two products forward and five in reverse.
TEST_CASE("attention on packed sequences computes the pairs of each sequence") {
  TrainingJob job = small_job();
  job.workload.lengths = uniform(2, 20);
  Training training(job);
  const auto all = all_submissions(training);
  const Fragment& forward = first_of(all, Phase::kForward);
  double pairs = 0;
  const BatchPtr batch = pack(job.workload, {0, heaviest_replica(job.workload, job.plan, 0)});
  for (const BatchSequence& s : batch->sequences) pairs += s.count * (s.count + 1) / 2.0;
  const Model& m = job.model;
  const double each = 2.0 * m.heads * (m.mla.nope_dim + m.mla.rope_dim + m.mla.v_dim);
  CHECK(attention_flops(forward, OpKind::kAttention) == Approx(m.layers * pairs * each));
  const Fragment& reverse = first_of(all, Phase::kBackward);
  const double back = 2.0 * m.heads * (3 * (m.mla.nope_dim + m.mla.rope_dim) + 2 * m.mla.v_dim);
  CHECK(attention_flops(reverse, OpKind::kAttentionGrad) == Approx(m.layers * pairs * back));
}

TEST_CASE("sequences as long as their rows compute what unpacked rows do") {
  TrainingJob job = small_job();
  Training plain(job);
  job.workload.lengths = uniform(32, 32);
  Training packed(job);
  const auto a = all_submissions(plain), b = all_submissions(packed);
  REQUIRE(a.size() == b.size());
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const Fragment &x = first_of(a, phase), &y = first_of(b, phase);
    REQUIRE(x.ops.size() == y.ops.size());
    double first = 0, second = 0;
    for (const Op& op : x.ops) first += op_flops(op, x).value;
    for (const Op& op : y.ops) second += op_flops(op, y).value;
    CHECK(first == Approx(second));
  }
}

TEST_CASE("of folded replicas the one with the most pairs is timed and all are counted") {
  TrainingJob job = small_job();
  job.workload.lengths = uniform(2, 20);
  REQUIRE(job.plan.fold);
  const auto tokens_of = [&](int replica) {
    PackedTokens tokens;
    for (int i = 0; i < job.workload.num_microbatches(job.plan); ++i)
      tokens.add(*pack(job.workload, {0, i * job.plan.dp + replica}));
    return tokens;
  };
  const double most = tokens_of(heaviest_replica(job.workload, job.plan, 0)).squares;
  double real = 0;
  for (int replica = 0; replica < job.plan.dp; ++replica) {
    CHECK(tokens_of(replica).squares <= most);
    real += tokens_of(replica).real;
  }
  CHECK(packed_tokens(job.workload, job.plan, 0).real == Approx(real));
}

TEST_CASE("each microbatch and each replica packs sequences of its own when every rank is simulated") {
  TrainingJob job = small_job();
  job.plan.fold = false;
  job.workload.lengths = uniform(2, 20);
  Training training(job);
  std::vector<std::uint64_t> hashes;
  for (const Submission& s : all_submissions(training))
    if (s.fragment->phase == Phase::kForward) hashes.push_back(s.fragment->hash);
  std::sort(hashes.begin(), hashes.end());
  CHECK(std::unique(hashes.begin(), hashes.end()) == hashes.end());
  CHECK(hashes.size() == 8);  // four replicas, two microbatches each
}

// Cut into pieces, or with copies to and from the host between its ops.
TEST_CASE("a pass that is written anew knows the sequences of its rows") {
  TrainingJob job = small_job();
  job.model.experts = {};
  job.plan.ep = 1;
  job.plan.dp = job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  job.workload.lengths = uniform(2, 20);
  TrainingJob cut = job, away = job, sharded = job;
  cut.plan.tp_chunks = 2;
  away.plan.offload.activations = true;
  sharded.plan.zero = 3;
  Training plain(job);
  const std::vector<Submission> as_it_was = all_submissions(plain);
  for (const TrainingJob& written : {cut, away, sharded}) {
    Training anew(written);
    const std::vector<Submission> all = all_submissions(anew);
    for (const auto& [phase, kind] :
         {std::pair{Phase::kForward, OpKind::kAttention}, {Phase::kBackward, OpKind::kAttentionGrad}}) {
      const double flops = attention_flops(first_of(all, phase), kind);
      CHECK(flops > 0);
      CHECK(flops == attention_flops(first_of(as_it_was, phase), kind));
    }
  }
}

TEST_CASE("scoring runs the forward passes alone and keeps nothing for a reverse pass") {
  TrainingJob job = small_job();
  job.workload.forward_only = true;
  job.plan.recompute = GENERATE(RecomputePolicy::kNone, RecomputePolicy::kFull, RecomputePolicy::kHybrid);
  Training training(job);
  const auto all = all_submissions(training);
  CHECK(all.size() == 2);  // two microbatches of one class
  for (const Submission& s : all) {
    CHECK(s.fragment->phase == Phase::kForward);
    for (const Tensor& tensor : s.fragment->tensors) CHECK(tensor.scope != Scope::kMicrobatch);
  }
  const ClassMemory memory = training.memory({1e12}).classes.front();
  CHECK(memory.at_peak[static_cast<int>(MemoryKind::kActivations)].value == 0);
  CHECK(memory.at_peak[static_cast<int>(MemoryKind::kGradients)].value == 0);
  CHECK(memory.at_peak[static_cast<int>(MemoryKind::kOptimizer)].value == 0);
}
