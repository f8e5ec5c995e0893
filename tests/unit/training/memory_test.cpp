#include "workloads/training/state/memory.h"

#include <deque>

#include <catch2/catch.hpp>

#include "small_job.h"
#include "tests/unit/workloads/small_schedule.h"
#include "workloads/schedule/executor.h"
#include "workloads/schedule/recorder.h"
#include "workloads/training/packing.h"

using namespace moebius;

namespace {

double by_kind(const MemoryReport& report, MemoryKind kind) {
  return report.classes[report.worst_class].at_peak[static_cast<int>(kind)].value;
}

// Elements of all parameters of one rank: the experts cut by four.
double rank_parameters(const TrainingJob& job) {
  const ParameterCount count = count_parameters(job.model);
  return count.total() - count.routed_experts + count.routed_experts / job.plan.ep;
}

// Passes take a nanosecond each, whatever they do.
class OneAfterAnother : public Executor {
 public:
  Time now() const override { return now_; }
  void submit(const Submission& submission) override { queue_.push_back(submission.sequence); }
  std::vector<Completion> wait(Time) override {
    const std::int32_t sequence = queue_.front();
    queue_.pop_front();
    ++now_.ns;
    return {{sequence, now_}};
  }
  Time finish() override { return now_; }

 private:
  std::deque<std::int32_t> queue_;
  Time now_;
};

}  // namespace

// BF16 weights, FP32 gradients, FP32 master weights and two FP32 moments: 2 + 4 + 12 bytes a parameter.
TEST_CASE(
    "without ZeRO a rank holds 2 bytes of weight, 4 of gradient and 12 of optimizer state for each "
    "parameter") {
  TrainingJob job = small_job();
  Training training(job);
  const MemoryReport report = training.memory({1e9});
  const double n = rank_parameters(job);
  CHECK(by_kind(report, MemoryKind::kWeights) == 2 * n);
  CHECK(by_kind(report, MemoryKind::kGradients) == 4 * n);
  CHECK(by_kind(report, MemoryKind::kOptimizer) == 12 * n);
}

// Heads of 16 columns: 4 of queries, 4 of keys and 4 of values, in each of 4 layers.
TEST_CASE(
    "a model whose maps all have biases keeps those of queries, keys and values as one that has no others") {
  TrainingJob job = small_job();
  job.model.attention = AttentionKind::kGqa;
  job.model.head_dim = 16;
  const auto weights = [&](Biases biases) {
    job.model.biases = biases;
    return by_kind(Training(job).memory({1e9}), MemoryKind::kWeights);
  };
  CHECK(weights(Biases::kQkv) - weights(Biases::kNone) == 2 * 4 * (4 + 4 + 4) * 16);
  CHECK(weights(Biases::kAll) == weights(Biases::kQkv));
}

// Dense parameters have 4 replicas, experts (EP 4 on 4 ranks) one. All sizes divide, so it holds to the byte.
TEST_CASE("ZeRO-1 cuts optimizer states over the replicas, to the byte") {
  TrainingJob job = small_job();
  job.plan.zero = 1;
  Training training(job);
  const ParameterCount count = count_parameters(job.model);
  const double dense = count.total() - count.routed_experts;
  const MemoryReport report = training.memory({1e9});
  CHECK(by_kind(report, MemoryKind::kOptimizer) == 12 * (dense / 4 + count.routed_experts / 4));
  CHECK(by_kind(report, MemoryKind::kWeights) == 2 * rank_parameters(job));
}

TEST_CASE("the first stage of a 1F1B pipeline keeps as many microbatches as there are stages") {
  TrainingJob job = small_job();
  job.plan.pp = 4;
  job.plan.dp = 1;
  job.plan.ep = 1;
  Training training(job);
  const MemoryReport report = training.memory({1e9});
  CHECK(report.classes[0].peak_microbatches == 4);
  CHECK(report.classes[3].peak_microbatches == 1);
}

TEST_CASE("after a step only weights, gradients and states are left") {
  TrainingJob job = small_job();
  Training training(job);
  const ClassMemory memory = training.memory({1e9}).classes[0];
  const double resident = 18 * rank_parameters(job);
  // The loss is one FP32 number that stays.
  CHECK(memory.after_pass.back().value == Approx(resident + 4));
  CHECK(memory.after_pass.front().value > resident);
}

TEST_CASE("a device that is too small does not fit, and the report says by how much") {
  Training training(small_job());
  CHECK_FALSE(training.memory({1e5}).fits());
  CHECK(training.memory({1e9}).fits());
}

// Korthikanti et al. 2022, section 4.2.2: a rank keeps its own rows of what enters a tensor-parallel region
// and gathers them again in the reverse pass, so that every activation is cut by the tensor-parallel degree.
// For each of the h columns of a token, in bytes, with an MLP of 4h and fused attention: 2 x 2 for the
// residual stream under the norms, 2 x 2 for the normed rows, 6 for queries, keys and values, 2 for what
// attention returns, 8 before and 8 after the activation; and 4 for each head's log-sum-exp. The loss keeps
// the last stream and 4 for each word.
TEST_CASE("with sequence parallelism every activation of a layer is cut by the tensor-parallel degree") {
  TrainingJob job = small_job();
  job.model.attention = AttentionKind::kGqa;
  job.model.experts = {};
  job.model.head_dim = 16;
  job.model.dense_width = 4 * job.model.hidden;
  job.model.gated = false;
  job.plan.dp = 1;
  job.plan.ep = 1;
  const auto layer_bytes = [&] {
    const auto kept = [&](int layers) {
      job.model.layers = layers;
      const ClassMemory memory = Training(job).memory({1e9}).classes[0];
      return memory.after_pass[0].value - memory.after_pass.back().value;
    };
    return kept(3) - kept(2);
  };
  const double alone = layer_bytes();
  CHECK(alone == 32 * (64 * (4 + 4 + 6 + 2 + 8 + 8) + 4 * 4));
  job.plan.tp = 4;
  job.plan.sequence_parallel = true;
  CHECK(layer_bytes() == alone / 4);
}

// Korthikanti et al. 2022, section 4.1: softmax keeps 2 bytes of each of the a s^2 scores of a sequence; with
// dropout, what it leaves (2) and its mask (1) are kept too. Beside that a layer keeps two masks of s h
// bytes.
TEST_CASE("unfused attention keeps the probabilities and dropout what it leaves of them and masks") {
  TrainingJob job = small_job();
  const auto activations = [&] { return by_kind(Training(job).memory({1e9}), MemoryKind::kActivations); };
  const double flash = activations();
  const double s = static_cast<double>(job.workload.sequence_length);
  const double layers = job.model.layers, b = static_cast<double>(job.workload.micro_batch);
  const double scores = layers * b * job.model.heads * s * s;
  job.plan.attention = AttentionKernels::kUnfused;
  CHECK(activations() - flash == 2 * scores);
  job.workload.dropout = 0.1;
  CHECK(activations() - flash == 5 * scores + layers * 2 * b * s * job.model.hidden);
}

// Two bytes of each pair of each head: of the longest microbatch, one under way at a time.
TEST_CASE("unfused attention of packed sequences keeps the scores of their own lengths") {
  TrainingJob job = small_job();
  job.plan.dp = job.plan.ep = 1;
  job.workload.lengths = SequenceLengths{.law = LengthLaw::kUniform, .least = 1, .most = 32};
  job.workload.global_batch = 6;
  const auto activations = [&] { return by_kind(Training(job).memory({1e9}), MemoryKind::kActivations); };
  const double flash = activations();
  job.plan.attention = AttentionKernels::kUnfused;
  std::int64_t most = 0;
  for (int i = 0; i < 6; ++i) {
    std::int64_t pairs = 0;
    const auto packed = pack(job.workload, {0, i});
    for (const BatchSequence& sequence : packed->sequences)
      pairs += std::int64_t{sequence.count} * sequence.count;
    most = std::max(most, (pairs + 31) / 32 * 32);
  }
  CHECK(activations() - flash == 2.0 * job.model.layers * job.model.heads * static_cast<double>(most));
}

namespace {

// All tokens' first choice is expert 0 with the share, the rest alike.
std::map<int, std::vector<double>> counts(const TrainingJob& job, double share) {
  std::map<int, std::vector<double>> of_layers;
  for (int layer = 0; layer < job.model.layers; ++layer) {
    std::vector<double>& of = of_layers[layer];
    of.assign(job.model.experts.routed, 1);
    of.front() = share;
  }
  return of_layers;
}

}  // namespace

// The peak of a run is that of its fullest step, whichever it is: of each step alone, the most.
TEST_CASE("memory is that of the step whose experts are fullest") {
  TrainingJob job = small_job();
  Popularity& popularity = job.workload.popularity;
  popularity.kind = PopularityKind::kRecorded;
  popularity.recorded =
      std::make_shared<const RecordedLoads>(std::vector{counts(job, 1), counts(job, 100), counts(job, 3)});
  std::vector<double> alone;
  for (int step = 0; step < 3; ++step) {
    job.workload.first_step = step, job.workload.steps = step + 1;
    alone.push_back(Training(job).memory({1e9}).peak().value);
  }
  REQUIRE(alone[1] > alone[0]);
  REQUIRE(alone[1] > alone[2]);
  job.workload.first_step = 0, job.workload.steps = 3;
  Training training(job);
  const MemoryReport report = training.memory({1e9});
  CHECK(report.peak().value == alone[1]);
  // Two microbatches, forward and back, and the optimizer, in each of three steps.
  CHECK(report.classes[0].after_pass.size() == 3 * (2 * 2 + 1));
}

// Draws of each microbatch: with one microbatch under way at a time the peak is that of the fullest of them.
TEST_CASE("memory is that of the microbatch whose experts are fullest") {
  TrainingJob job = small_job();
  job.workload.popularity = {.kind = PopularityKind::kZipf, .exponent = 1, .per_microbatch = true};
  job.workload.global_batch = 4;
  const double first = Training(job).memory({1e9}).peak().value;
  double last = first;
  for (int microbatches = 2; microbatches <= 16; ++microbatches) {
    job.workload.global_batch = 4 * microbatches;
    const double peak = Training(job).memory({1e9}).peak().value;
    CHECK(peak >= last);
    last = peak;
  }
  CHECK(last > first);
}

TEST_CASE("memory over time begins with what is there before the first pass") {
  TrainingJob job = small_job();
  Training training(job);
  Recorder recorder(training.layout(), {});
  training.record_memory(recorder);
  const MemoryReport report = training.memory({1e9});
  const std::vector<CounterSample>& samples = recorder.timeline().samples;
  REQUIRE(samples.size() == report.classes.size());
  CHECK(samples[0].time == Time{});
  CHECK(samples[0].value == total(report.classes[0].resident).value);
  CHECK(samples[0].value > 0);
}

// All passes of a run have ended when it has, those too that ended after the last was issued.
TEST_CASE("memory over time ends with what stays when every pass is done") {
  TrainingJob job = small_job();
  job.workload.steps = 2;
  Training training(job);
  Recorder recorder(training.layout(), {});
  training.record_memory(recorder);
  OneAfterAnother executor;
  execute(training, executor, recorder);
  const MemoryReport report = training.memory({1e9});
  const std::vector<CounterSample>& samples = recorder.timeline().samples;
  const std::size_t passes = report.classes[0].after_pass.size();
  CHECK(samples.size() == report.classes.size() * (1 + 2 * passes));
  CHECK(samples.back().value == report.classes.back().after_pass.back().value);
}

// Most of 64 tokens choose both experts of one rank. Rows of 64 bytes; as many are by expert before combine.
TEST_CASE("rows that the library's all-to-all brings are held one for each expert of a token") {
  Fragment fragment = small_fragment();
  RouteSpec spec = small_route();
  spec.popularity = {.kind = PopularityKind::kZipf, .exponent = 3};
  spec.tokens = 64;
  const auto route = std::make_shared<const Route>(spec);
  const int received = route->max_received_tokens(), copies = route->max_rows_of_rank();
  REQUIRE(received < copies);
  fragment.routes = {route};
  fragment.tensors[3].rows = received;
  fragment.tensors[5].rows = copies;
  const auto peak = [&](Algorithm algorithm) {
    for (const int op : {1, 3}) fragment.ops[op].algorithm = algorithm;
    const std::vector<MemoryPass> passes{{.fragment = &fragment, .microbatches = 1}};
    return memory_of_passes(passes).peak.value;
  };
  CHECK(peak(Algorithm::kLibrary) - peak(Algorithm::kAuto) == (copies - received) * 64);
}
