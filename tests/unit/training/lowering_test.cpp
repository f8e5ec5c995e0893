#include <catch2/catch.hpp>

#include <set>

#include "small_job.h"
#include "workloads/training/layers/builder.h"

using namespace moebius;

namespace {

const Fragment& fragment_of(const std::vector<Submission>& submissions, Phase phase) {
  for (const Submission& submission : submissions) {
    if (submission.fragment->phase == phase) return *submission.fragment;
  }
  FAIL("no such fragment");
  return *submissions[0].fragment;
}

double all_matrix_flops(const Fragment& fragment) {
  double flops = 0;
  for (const OpKind kind : {OpKind::kGemm, OpKind::kGemmDgrad, OpKind::kGemmWgrad, OpKind::kGroupedGemm,
                            OpKind::kGroupedGemmDgrad, OpKind::kGroupedGemmWgrad}) {
    flops += matrix_flops(fragment, kind);
  }
  return flops;
}

int count(const Fragment& fragment, OpKind kind) {
  return static_cast<int>(
      std::count_if(fragment.ops.begin(), fragment.ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

}  // namespace

// One rank of four, balanced: a microbatch is 32 tokens; the experts of this rank receive 32*2*4/4 = 64 rows.
TEST_CASE("the forward matrices of a rank do the work that the model says") {
  TrainingJob job = small_job();
  Training training(job);
  const Fragment& forward = fragment_of(all_submissions(training), Phase::kForward);
  const double by_model = 32 * forward_flops_per_token(job.model, 32, true).value;
  double attention = 0;
  for (const Op& op : forward.ops) {
    if (op.kind == OpKind::kAttention) attention += op_flops(op.kind, op.shape).value;
  }
  // The model's figure counts half of the square for causal attention, the op the exact pairs s(s+1)/2.
  CHECK(all_matrix_flops(forward) + attention == Approx(by_model).epsilon(0.01));
}

// dx and dW cost one product each, of the size of the forward one.
TEST_CASE("the reverse matrices are twice the forward ones") {
  Training training(small_job());
  const auto submissions = all_submissions(training);
  const double forward = all_matrix_flops(fragment_of(submissions, Phase::kForward));
  const double backward = all_matrix_flops(fragment_of(submissions, Phase::kBackward));
  CHECK(backward == Approx(2 * forward));
}

TEST_CASE("full recompute adds exactly the layers' forward work to the reverse pass") {
  TrainingJob job = small_job();
  Training plain(job);
  job.plan.recompute = RecomputePolicy::kFull;
  Training recomputing(job);
  const auto a = all_submissions(plain), b = all_submissions(recomputing);
  const double head = 2.0 * 32 * job.model.hidden * job.model.vocabulary;  // outside the layers
  const double forward = all_matrix_flops(fragment_of(a, Phase::kForward)) - head;
  const double before = all_matrix_flops(fragment_of(a, Phase::kBackward));
  const double after = all_matrix_flops(fragment_of(b, Phase::kBackward));
  CHECK(all_matrix_flops(fragment_of(b, Phase::kForward)) == Approx(forward + head));
  // The last matrix of each half layer feeds only the residual, which is kept or not needed: it is not
  // computed again.
  CHECK(after - before <= forward);
  CHECK(after - before >= 0.6 * forward);
}

// Of four layers one is dense, whose last product is 32 rows by 64 columns by 128; experts' rows are weighed.
TEST_CASE("full recompute that stops early leaves out the last product of dense layers") {
  TrainingJob job = small_job();
  job.plan.recompute = RecomputePolicy::kFull;
  Training whole(job);
  job.plan.recompute_stops = true;
  Training stopping(job);
  const auto a = all_submissions(whole), b = all_submissions(stopping);
  const double last = 2.0 * 32 * job.model.hidden * job.model.dense_width;
  const Fragment &before = fragment_of(a, Phase::kBackward), &after = fragment_of(b, Phase::kBackward);
  CHECK(all_matrix_flops(before) - all_matrix_flops(after) == Approx(last));
  CHECK(count(before, OpKind::kCombine) == count(after, OpKind::kCombine));
  CHECK(count(before, OpKind::kAdd) > count(after, OpKind::kAdd));
  CHECK(all_matrix_flops(fragment_of(b, Phase::kForward)) ==
        Approx(all_matrix_flops(fragment_of(a, Phase::kForward))));
}

// Two layers that run again together: the first one runs to its end, for the second begins with it.
TEST_CASE("of a group of layers only the last one stops early") {
  TrainingJob job = small_job();
  job.model.experts = {};
  job.plan.ep = 1;
  job.plan.recompute = RecomputePolicy::kFull;
  const double last = 2.0 * 32 * job.model.hidden * job.model.dense_width;
  for (const int layers : {1, 2, 4}) {
    job.plan.recompute_layers = layers;
    job.plan.recompute_stops = false;
    Training whole(job);
    job.plan.recompute_stops = true;
    Training stopping(job);
    const double less = all_matrix_flops(fragment_of(all_submissions(whole), Phase::kBackward)) -
                        all_matrix_flops(fragment_of(all_submissions(stopping), Phase::kBackward));
    CHECK(less == Approx(4 / layers * last));
  }
}

TEST_CASE("selective recompute runs the chosen ops again and keeps less") {
  TrainingJob job = small_job();
  Training plain(job);
  job.plan.recompute = RecomputePolicy::kSelective;
  job.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kActivation, RecomputeOp::kMlaUp};
  Training recomputing(job);
  const auto a = all_submissions(plain), b = all_submissions(recomputing);
  const Fragment& backward = fragment_of(b, Phase::kBackward);
  CHECK(count(backward, OpKind::kActivation) > 0);
  CHECK(count(backward, OpKind::kNorm) > 0);
  CHECK(count(backward, OpKind::kGemm) == 2 * job.model.layers);  // q_b and kv_b of each layer
  CHECK(recomputing.memory({1e9}).peak() < plain.memory({1e9}).peak());
}

TEST_CASE("every expert layer dispatches and combines once forward and once in reverse") {
  TrainingJob job = small_job();
  Training training(job);
  const auto submissions = all_submissions(training);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const Fragment& fragment = fragment_of(submissions, phase);
    CHECK(count(fragment, OpKind::kDispatch) == 3);  // layers 1 to 3; layer 0 is dense
    CHECK(count(fragment, OpKind::kCombine) == 3);
  }
}

// Of each of three layers: the score and its product with the shared experts; back, the gradients of both and
// their share of the gradient of what came in.
TEST_CASE("a gate of the shared experts is two ops a layer, four and a sum back, in BF16") {
  TrainingJob job = small_job();
  job.plan.gemm = DType::kFp8;
  Training without(job);
  job.model.experts.shared_gate = true;
  Training with(job);
  const auto a = all_submissions(without), b = all_submissions(with);
  const auto more = [&](Phase phase, OpKind kind) {
    return count(fragment_of(b, phase), kind) - count(fragment_of(a, phase), kind);
  };
  const Fragment& forward = fragment_of(b, Phase::kForward);
  CHECK(forward.ops.size() == fragment_of(a, Phase::kForward).ops.size() + 3 * 2);
  CHECK(more(Phase::kForward, OpKind::kGemm) == 3);
  CHECK(more(Phase::kForward, OpKind::kActivation) == 3);
  for (const OpKind kind : {OpKind::kActivationGrad, OpKind::kGemmDgrad, OpKind::kGemmWgrad, OpKind::kAdd})
    CHECK(more(Phase::kBackward, kind) == 3);
  CHECK(fragment_of(b, Phase::kBackward).ops.size() == fragment_of(a, Phase::kBackward).ops.size() + 3 * 4);
  for (const Op& op : forward.ops) {
    if (op.role == Role::kSharedScore) CHECK(op.dtype == DType::kBf16);
  }
  // A row of 64 in BF16 for each of the layers' ranks, and the shared experts' sums, which dz needs: 32
  // tokens of 64 in BF16, with a number each.
  CHECK(with.memory({1e9}).peak() > without.memory({1e9}).peak());
}

// Of 8 query heads' and 2 * 4 key heads' worth of columns; the products take and give them, no pass of its
// own.
TEST_CASE("biases of queries, keys and values are no ops of their own") {
  TrainingJob job = small_job();
  job.model.attention = AttentionKind::kGqa;
  job.model.heads = 8;
  job.model.head_dim = 16;
  job.plan.gemm = DType::kFp8;
  Training without(job);
  job.model.biases = Biases::kQkv;
  Training with(job);
  const auto a = all_submissions(without), b = all_submissions(with);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const Fragment &plain = fragment_of(a, phase), &biased = fragment_of(b, phase);
    REQUIRE(plain.ops.size() == biased.ops.size());
    int changed = 0;
    for (std::size_t i = 0; i < plain.ops.size(); ++i) {
      const Op& op = biased.ops[i];
      CHECK(op.kind == plain.ops[i].kind);
      if (op.shape == plain.ops[i].shape) continue;
      ++changed;
      const bool back = op.kind == OpKind::kGemmWgrad;
      CHECK((back || op.kind == OpKind::kGemm));
      const Tensor& vector = biased.tensors[back ? biased.output(op, 1) : biased.input(op, 2)];
      CHECK(is_bias(vector));
      CHECK(vector.rows == (8 + 2 * 4) * 16);
      CHECK(vector.dtype == (back ? DType::kFp32 : DType::kBf16));
    }
    CHECK(changed == 4);  // one a layer
  }
  // What counts them as parameters counts what is kept: BF16, sums in FP32, and 12 bytes of states.
  const double vectors = count_parameters(job.model).total();
  job.model.biases = Biases::kNone;
  const double more = vectors - count_parameters(job.model).total();
  CHECK(more == 4 * (8 + 2 * 4) * 16);
  const auto bytes = [&](Training& training, MemoryKind kind) {
    return training.memory({1e9}).classes[0].resident[static_cast<int>(kind)].value;
  };
  CHECK(bytes(with, MemoryKind::kWeights) == bytes(without, MemoryKind::kWeights) + 2 * more);
  CHECK(bytes(with, MemoryKind::kGradients) == bytes(without, MemoryKind::kGradients) + 4 * more);
  CHECK(bytes(with, MemoryKind::kOptimizer) == bytes(without, MemoryKind::kOptimizer) + 12 * more);
}

TEST_CASE("in FP8 every linear layer's operands are cast, the router and the head stay in BF16") {
  TrainingJob job = small_job();
  job.plan.gemm = DType::kFp8;
  Training training(job);
  const Fragment& forward = fragment_of(all_submissions(training), Phase::kForward);
  for (const Op& op : forward.ops) {
    if (op.kind != OpKind::kGemm && op.kind != OpKind::kGroupedGemm) continue;
    const bool high = op.role == Role::kRouter || op.role == Role::kHead;
    CHECK(op.dtype == (high ? DType::kBf16 : DType::kFp8));
    if (!high) CHECK(forward.tensors[forward.input(op, 0)].dtype == DType::kFp8);
  }
  CHECK(count(forward, OpKind::kQuantise) > 0);
}

TEST_CASE("fused casts come out of norms and activations, not of kernels of their own") {
  TrainingJob job = small_job();
  job.plan.gemm = DType::kFp8;
  Training separate(job);
  job.plan.fused_quantise = true;
  Training fused(job);
  const Fragment& a = fragment_of(all_submissions(separate), Phase::kForward);
  const auto submissions = all_submissions(fused);
  const Fragment& b = fragment_of(submissions, Phase::kForward);
  CHECK(count(b, OpKind::kQuantise) < count(a, OpKind::kQuantise));
  const bool any = std::any_of(b.ops.begin(), b.ops.end(),
                               [](const Op& op) { return op.kind == OpKind::kNorm && op.num_outputs == 2; });
  CHECK(any);
}

// Forward the sums of squares of queries and keys, back those of their projections: a message of two FP32 a
// row each.
TEST_CASE("norms of all heads on tensor-parallel ranks are a sum of two numbers a row, forward and back") {
  TrainingJob job = small_job();
  job.model.attention = AttentionKind::kGqa;
  job.model.head_dim = 16;
  job.plan.tp = 2;
  Training without(job);
  job.model.qk_norm = QkNorm::kPerLayer;
  Training with(job);
  const auto a = all_submissions(without), b = all_submissions(with);
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const Fragment &before = fragment_of(a, phase), &after = fragment_of(b, phase);
    CHECK(count(after, OpKind::kAllReduce) == count(before, OpKind::kAllReduce) + job.model.layers);
    CHECK(count(after, OpKind::kRowMeans) == job.model.layers);
    for (const Op& op : after.ops) {
      if (op.kind != OpKind::kAllReduce || op.role != Role::kQNorm) continue;
      CHECK(op.dtype == DType::kFp32);
      CHECK(op.payload.value == static_cast<double>(op.shape.m) * 2 * 4);
    }
  }
}

TEST_CASE("communication on the experts' lane waits for compute through dependencies") {
  Training training(small_job());
  const Fragment& forward = fragment_of(all_submissions(training), Phase::kForward);
  for (const Op& op : forward.ops) {
    if (op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine) CHECK(op.num_dependencies > 0);
  }
}

TEST_CASE("the expert loads that a route gives fit the tensors that hold them") {
  TrainingJob job = small_job();
  job.workload.popularity = {PopularityKind::kZipf, 1.0, true};
  Training training(job);
  for (const Submission& submission : all_submissions(training)) {
    for (const Op& op : submission.fragment->ops) {
      if (op.kind != OpKind::kGroupedGemm) continue;
      CHECK(op.shape.m == submission.fragment->routes[op.route]->max_rows_of_rank());
    }
  }
}

TEST_CASE("the same job issues the same schedule, whatever completes when") {
  TrainingJob job = small_job();
  job.plan.pp = 2;
  job.plan.dp = 2;
  job.plan.ep = 2;
  Training a(job), b(job);
  const auto first = all_submissions(a);
  std::vector<Submission> second;  // completes only when the window is full
  std::vector<std::int32_t> open;
  while (!b.done()) {
    while (auto submission = b.next({})) second.push_back(*submission), open.push_back(submission->sequence);
    for (const std::int32_t sequence : open) b.completed({sequence, {}});
    open.clear();
  }
  REQUIRE(first.size() == second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].sequence == static_cast<std::int32_t>(i));
    CHECK(first[i].fragment->hash == second[i].fragment->hash);
    CHECK(first[i].rank_class == second[i].rank_class);
  }
}

// Narayanan et al., SC'21, section 4.1: what tensor-parallel ranks hold alike crosses the network once.
TEST_CASE("of a message that is cut each rank sends a share, and all are gathered once each way") {
  TrainingJob job = small_job();
  job.model.experts = {};
  job.plan.dp = job.plan.ep = 1;
  job.plan.tp = job.plan.pp = 2;
  const double whole = 32 * 64 * 2;  // tokens, columns, bytes
  for (const bool cut : {false, true}) {
    job.plan.cut_messages = cut;
    Training training(job);
    for (const Submission& submission : all_submissions(training)) {
      double gathered = 0;
      for (const Op& op : submission.fragment->ops) {
        if (op.kind == OpKind::kSend) CHECK(op.payload.value == (cut ? whole / 2 : whole));
        if (op.kind == OpKind::kAllGather && op.role == Role::kPipeline) gathered += op.payload.value;
      }
      const bool receives = count(*submission.fragment, OpKind::kRecv) > 0;
      CHECK(gathered == (cut && receives ? whole : 0));
    }
  }
}

// As Megatron-LM does: dx is on its way to the other ranks of the group while dW is computed.
// A ring of four hands blocks on three times a layer, of which the second and the third wait until the block
// before the last one has been used: there is room for two.
TEST_CASE("a ring never holds more than two blocks of keys, however its fragments are written anew") {
  const auto waits = [](const Fragment& fragment) {
    int waiting = 0;
    for (const Op& op : fragment.ops) {
      if (op.kind != OpKind::kAllToAll || op.lane == Lane::kCompute) continue;
      for (int d = 0; d < op.num_dependencies; ++d)
        waiting +=
            fragment.ops[fragment.dependencies[op.first_dependency + d]].kind == OpKind::kAttention ? 1 : 0;
    }
    return waiting;
  };
  TrainingJob ring = dense_job();
  ring.plan.dp = 1;
  ring.plan.cp = 4;
  ring.plan.context = ContextKind::kRing;
  std::vector<TrainingJob> jobs(5, ring);
  jobs[1].plan.zero = 2;
  jobs[2].plan.zero = 3;
  jobs[3].plan.offload.optimizer = true;
  jobs[4].plan.tp = 2;
  jobs[4].plan.sequence_parallel = true;
  jobs[4].plan.tp_chunks = 2;
  for (const TrainingJob& job : jobs) {
    Training training(job);
    CHECK(waits(fragment_of(all_submissions(training), Phase::kForward)) == 2 * job.model.layers);
  }
  ring.plan.recompute = RecomputePolicy::kFull;
  Training again(ring);
  CHECK(waits(fragment_of(all_submissions(again), Phase::kBackward)) == 2 * ring.model.layers);
}

TEST_CASE("tensor-parallel input gradients travel beside weight gradients") {
  for (const bool sequence_parallel : {false, true}) {
    TrainingJob job = small_job();
    job.model.experts = {};
    job.plan = {};
    job.plan.tp = 4;
    job.plan.sequence_parallel = sequence_parallel;
    Training training(job);
    const auto submissions = all_submissions(training);
    const std::vector<Op>& ops = fragment_of(submissions, Phase::kBackward).ops;
    int sums = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const bool sum = ops[i].kind == OpKind::kReduceScatter || ops[i].kind == OpKind::kAllReduce;
      if (!sum || ops[i].group != GroupRole::kTensor || ops[i].phase != Phase::kBackward) continue;
      // The rotated part of a key comes from a product that is already behind the next sum.
      const auto next =
          std::find_if(ops.begin() + i, ops.end(), [](const Op& op) { return op.lane == Lane::kCompute; });
      REQUIRE(next != ops.end());
      sums += next->kind == OpKind::kGemmWgrad;
    }
    CHECK(sums >= 2 * job.model.layers);  // in each attention and each MLP
  }
}

// Each replica alone would be issued 256 passes ahead: of 2 steps of 2 microbatches and an update it has 10.
TEST_CASE("a run that may be stopped is not issued further ahead than so many steps") {
  TrainingJob job = small_job();
  job.plan.fold = false;
  job.workload.global_batch = 8;
  job.workload.micro_batch = 1;
  job.workload.steps = 100;
  const auto issued = [&](bool bounded) {
    Training training(job);
    if (bounded) training.stay_within(2);
    while (training.next({})) {
    }
    return training.steps_begun();
  };
  CHECK(issued(false) > 10);
  CHECK(issued(true) == 2);
}
