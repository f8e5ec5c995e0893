// Host runs from checkpoints: the model is that of the weights, however the ranks share it.
#include <functional>
#include <memory>

#include "real/activation_dump.h"
#include "real/alignment.h"
#include "real/token_stream.h"
#include "tests/cross/reference_model.h"
#include "tests/cross/small_training.h"
#include "tests/process.h"
#include "workloads/checkpoint/convert.h"
#include "workloads/checkpoint/parameters.h"

#include "tests/catch.h"

namespace moebius::test {
namespace {

using Change = std::function<void(TrainingJob&)>;

TrainingJob job_of(const Model& model) {
  TrainingJob job = small_job(model);
  job.workload.sequence_length = 8;
  return job;
}

// A run from the weights of a file; afterwards losses, weights and a dump can be had.
class WeightsRun {
 public:
  WeightsRun(const std::string& checkpoint, const TrainingJob& job, bool exact,
             const Constants& constants = {})
      : job_(job),
        layout_(make_layout(job_.plan)),
        checkpoint_(checkpoint),
        dump_(job_.model, job_.plan, job_.workload, layout_),
        run_(job_, options(exact, constants)),
        host_(run_.run()) {}

  HostExecutor<float>& host() { return host_; }
  const ActivationDump& dump() const { return dump_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Layout& layout() const { return layout_; }
  const TrainingJob& job() const { return job_; }

 private:
  HostOptions options(bool exact, const Constants& constants) {
    HostOptions options;
    options.constants = constants;
    options.exact = exact;
    options.weights = [this](const Tensor& parameter) {
      return load_parameter(checkpoint_, job_.model, parameter);
    };
    options.observer = [this](const ComputedOp& computed) { dump_.observe(computed); };
    return options;
  }

  TrainingJob job_;
  Layout layout_;
  Checkpoint checkpoint_;
  ActivationDump dump_;
  SmallRun<float> run_;
  HostExecutor<float>& host_;
};

// What the plain loops make of the tokens that the run's first microbatch reads.
void write_reference(const std::string& path, const TrainingJob& job, ReferenceModel reference) {
  const std::int64_t length = job.workload.sequence_length;
  const std::vector<std::int32_t> tokens =
      token_sequence({HostOptions{}.seed, 0, 0}, length + job.model.mtp_layers, job.model.vocabulary);
  Tensors outputs;
  for (const auto& [name, rows] : reference.run({tokens.begin(), tokens.end()})) {
    StoredTensor tensor{.name = name, .type = StoredType::kF32, .shape = {}};
    tensor.shape = {length, static_cast<std::int64_t>(rows[0].size())};
    std::vector<float> values;
    for (const std::vector<double>& row : rows) values.insert(values.end(), row.begin(), row.end());
    outputs[name] = {tensor, from_floats(StoredType::kF32, values)};
  }
  write_tensors(path, outputs);
}

// Nothing is rounded but the dump, to BF16: half of 2^-8 an element at most.
void require_reference(const Model& model, WeightNaming naming, const std::vector<Change>& plans,
                       const Constants& constants = {}) {
  const Scratch scratch;
  const Tensors weights = executable_tensors(model, naming, 11);
  write_tensors(scratch.path("in.safetensors"), weights);
  write_reference(scratch.path("reference.safetensors"), job_of(model),
                  ReferenceModel(model, constants, weights));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    INFO("plan " << i);
    TrainingJob job = job_of(model);
    plans[i](job);
    WeightsRun run(scratch.path("in.safetensors"), job, true, constants);
    run.dump().write(scratch.path("run.safetensors"));
    const Alignment alignment = align(scratch.path("run.safetensors"), scratch.path("reference.safetensors"));
    INFO(to_text(alignment));
    CHECK(alignment.only_in_run.empty());
    CHECK(alignment.only_in_reference.empty());
    CHECK(alignment.layers.size() >= 9);
    for (const AlignedLayer& layer : alignment.layers) CHECK(layer.mean_relative < 0x1p-9);
  }
}

void alone(TrainingJob&) {}
void two_tensor_ranks(TrainingJob& job) {
  job.plan.tp = 2;
}
void sequence_parallel(TrainingJob& job) {
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  job.plan.ep = job.model.experts.routed > 0 ? 2 : 1;
}
void two_stages(TrainingJob& job) {
  job.plan.pp = 2;
}
void two_context_ranks(TrainingJob& job) {
  job.plan.cp = 2;
}
void expert_parallel(TrainingJob& job) {
  job.plan.dp = job.plan.ep = 4;
}

// The losses of two steps.
std::vector<double> losses(const std::string& checkpoint, TrainingJob job, const Change& plan) {
  job.workload.steps = 2;
  plan(job);
  WeightsRun run(checkpoint, job, true);
  return {run.host().loss(0), run.host().loss(1)};
}

// What all ranks hold after their steps.
std::vector<HeldParameter> held_weights(WeightsRun& run) {
  std::vector<HeldParameter> held;
  for (int rank = 0; rank < run.layout().ranks; ++rank)
    for (const auto& weight : run.host().held(rank, MemoryKind::kWeights))
      held.push_back({rank, weight.tensor, weight.values});
  return held;
}

}  // namespace

TEST_CASE(
    "a run from Hugging Face weights computes what their modelling code does: grouped-query attention") {
  require_reference(grouped_model(), WeightNaming::kShared,
                    {alone, two_tensor_ranks, sequence_parallel, two_stages, two_context_ranks});
  for (const ParallelBlock block : {ParallelBlock::kOneNorm, ParallelBlock::kTwoNorms})
    require_reference(parallel_model(block), WeightNaming::kShared, {alone, two_stages, two_context_ranks});
}

TEST_CASE("the same: latent attention, experts, a module for multi-token prediction") {
  require_reference(all_experts(latent_model()), WeightNaming::kShared,
                    {alone, sequence_parallel, two_stages, expert_parallel});
}

TEST_CASE("the same: Mixtral's names") {
  Model mixtral = grouped_model();
  mixtral.dense_width = 0;
  mixtral.experts = {.routed = 4, .active = 4, .width = 16};
  require_reference(mixtral, WeightNaming::kMixtral, {alone, sequence_parallel, expert_parallel});
}

TEST_CASE("the same: Qwen2-MoE's shared expert with its gate") {
  require_reference(gated_model(), WeightNaming::kSharedOne,
                    {alone, sequence_parallel, two_stages, expert_parallel});
}

TEST_CASE("the same: Qwen2's biases of queries, keys and values, and Qwen2-MoE's") {
  require_reference(biased(grouped_model()), WeightNaming::kShared,
                    {alone, two_tensor_ranks, sequence_parallel, two_stages, two_context_ranks});
  require_reference(biased(gated_model()), WeightNaming::kSharedOne,
                    {alone, sequence_parallel, two_stages, expert_parallel});
}

TEST_CASE("the same: Qwen3's norms of heads, a base of a million, another epsilon") {
  Model qwen = grouped_model();
  qwen.qk_norm = QkNorm::kPerHead;
  const Constants constants{.rotary = {.base = 1e6}, .norm_epsilon = 1e-2};
  require_reference(qwen, WeightNaming::kShared,
                    {alone, two_tensor_ranks, sequence_parallel, two_stages, two_context_ranks}, constants);
}

TEST_CASE(
    "the same: norms of all heads together, OLMoE's; positions that turn half of each head, GLM-4.5's") {
  const std::vector<Change> layouts = {alone, two_tensor_ranks, sequence_parallel, two_stages,
                                       two_context_ranks};
  Model model = biased(grouped_model());
  model.qk_norm = QkNorm::kPerLayer;
  require_reference(model, WeightNaming::kShared, layouts, {.rotary = {.base = 1e6}, .norm_epsilon = 1e-2});
  model.rotary_dim = model.head_dim / 2;  // and both, MiniMax-M2's
  require_reference(model, WeightNaming::kShared, layouts);
  model.qk_norm = QkNorm::kPerHead;
  require_reference(model, WeightNaming::kShared, layouts);
}

TEST_CASE("the same: positions that YaRN stretches, with its scale of scores") {
  // Of two rotary pairs the first keeps its frequency, the second is stretched by half.
  const Constants constants{.rotary = {.base = 100, .factor = 4, .low = 0, .high = 2, .magnitude = 1.2},
                            .score_scale = 1.5};
  require_reference(all_experts(latent_model()), WeightNaming::kShared, {alone, sequence_parallel},
                    constants);
}

TEST_CASE("one and two tensor-parallel ranks have the same losses from the same weights") {
  const Scratch scratch;
  Model olmoe = grouped_model();
  olmoe.qk_norm = QkNorm::kPerLayer;
  for (const Model& model : {grouped_model(), biased(grouped_model()), olmoe, all_experts(latent_model())}) {
    const std::string path = scratch.path("in.safetensors");
    write_tensors(path, executable_tensors(model, WeightNaming::kShared, 12));
    const std::vector<double> one = losses(path, job_of(model), alone);
    const std::vector<double> two = losses(path, job_of(model), sequence_parallel);
    for (int step = 0; step < 2; ++step) CHECK(two[step] == Approx(one[step]).epsilon(1e-5));
  }
}

TEST_CASE("a saved checkpoint holds what the ranks hold, and goes back to Hugging Face's form") {
  const Scratch scratch;
  const Model model = latent_model();
  Tensors tensors = random_tensors(model, WeightNaming::kShared, 13);
  write_tensors(scratch.path("in.safetensors"), tensors);
  TrainingJob job = job_of(model);
  job.plan.tp = 2;
  job.plan.pp = 2;
  job.plan.dp = 2;
  job.plan.ep = 4;
  job.plan.zero = 1;
  job.plan.sequence_parallel = true;
  WeightsRun run(scratch.path("in.safetensors"), job, false);
  std::vector<HeldParameter> held;
  for (int rank = 0; rank < run.layout().ranks; ++rank) {
    const int stage = rank / 4, local = rank % 4;
    for (const auto& weight : run.host().held(rank, MemoryKind::kWeights)) {
      const bool expert = weight.tensor.experts > 0;
      if (expert || local < 2) held.push_back({stage * 4 + local, weight.tensor, weight.values});
    }
  }
  const std::string saved = scratch.path("saved");
  save_parameters({.directory = saved,
                   .degrees = {2, 2, 4},
                   .model = model,
                   .step = 1,
                   .source = &run.checkpoint(),
                   .config = ""},
                  held);
  const Checkpoint checkpoint(saved);
  check_checkpoint(checkpoint, model);
  CHECK(checkpoint.index().step == 1);
  // Adam moved every matrix (norms stand around one, where a step is less than BF16 shows); what is loaded is
  // what is held.
  for (const HeldParameter& parameter : held) {
    const std::vector<double> loaded = load_parameter(checkpoint, model, parameter.tensor);
    CHECK(std::equal(loaded.begin(), loaded.end(), parameter.values.begin(), parameter.values.end()));
    if (parameter.tensor.rows > 1) CHECK(loaded != load_parameter(run.checkpoint(), model, parameter.tensor));
  }
  // What no step changes is carried along: the correction bias of the router.
  const std::string bias = "model.layers.1.mlp.gate.e_score_correction_bias";
  CHECK(checkpoint.read(bias, {0, 8, 0, 1}) == tensors.at(bias).second);
  convert({.in = saved, .to = "hf", .out = scratch.path("hf"), .model = ""}, ModelCatalog());
  check_checkpoint(Checkpoint(scratch.path("hf")), model);
}

TEST_CASE("norms of all heads are saved with the heads of each rank, and joined in Hugging Face's form") {
  const Scratch scratch;
  Model olmoe = grouped_model();
  olmoe.qk_norm = QkNorm::kPerLayer;
  write_tensors(scratch.path("in.safetensors"), random_tensors(olmoe, WeightNaming::kShared, 19));
  TrainingJob job = job_of(olmoe);
  job.plan.tp = 2;
  WeightsRun run(scratch.path("in.safetensors"), job, false);
  const std::vector<HeldParameter> held = held_weights(run);
  const std::string saved = scratch.path("saved"), joined = scratch.path("hf");
  save_parameters({.directory = saved, .degrees = {2, 1, 1}, .model = olmoe, .step = 1, .config = ""}, held);
  convert({.in = saved, .to = "hf", .out = joined, .model = ""}, ModelCatalog());
  for (const Checkpoint& checkpoint : {Checkpoint(saved), Checkpoint(joined)}) {
    check_checkpoint(checkpoint, olmoe);
    for (const HeldParameter& parameter : held) {
      const std::vector<double> loaded = load_parameter(checkpoint, olmoe, parameter.tensor);
      CHECK(std::equal(loaded.begin(), loaded.end(), parameter.values.begin(), parameter.values.end()));
    }
  }
}

TEST_CASE("a new checkpoint of a model with a gate has its family's names") {
  const Scratch scratch;
  const Model model = gated_model();
  write_tensors(scratch.path("in.safetensors"), random_tensors(model, WeightNaming::kSharedOne, 17));
  TrainingJob job = job_of(model);
  job.plan.pp = 2;
  WeightsRun run(scratch.path("in.safetensors"), job, false);
  const std::vector<HeldParameter> held = held_weights(run);
  const std::string saved = scratch.path("saved");
  save_parameters({.directory = saved, .degrees = {1, 2, 1}, .model = model, .step = 1, .config = ""}, held);
  const Checkpoint checkpoint(saved);
  require_executable(checkpoint, model);
  CHECK(checkpoint.naming() == WeightNaming::kSharedOne);
  const std::string gate = "model.layers.1.mlp.shared_expert_gate.weight";
  CHECK(checkpoint.index().weights.at(gate).shape == std::vector<std::int64_t>{1, 32});
  const Region all{0, 1, 0, 32};
  CHECK(checkpoint.read(gate, all) != run.checkpoint().read(gate, all));  // it learned
}

TEST_CASE("weights of a gate that the model has not are refused") {
  const Scratch scratch;
  Model model = gated_model();
  write_tensors(scratch.path("in.safetensors"), random_tensors(model, WeightNaming::kSharedOne, 18));
  model.experts.shared_gate = false;
  CHECK_THROWS_WITH(
      require_executable(Checkpoint(scratch.path("in.safetensors")), model),
      Catch::Contains("\"model.layers.0.mlp.shared_expert_gate.weight\" is not a weight of small"));
}

TEST_CASE("8-bit weights are read times the factors of their blocks") {
  const Scratch scratch;
  const Model model = grouped_model();
  const Tensors tensors = random_tensors(model, WeightNaming::kShared, 14, true);
  write_tensors(scratch.path("in.safetensors"), tensors);
  const Checkpoint checkpoint(scratch.path("in.safetensors"));
  const std::string name = "model.layers.0.mlp.down_proj.weight";  // [32, 48]: one block, factor 0.001
  const std::vector<float> codes = to_floats(StoredType::kFp8E4m3, tensors.at(name).second);
  const std::vector<float> right = checkpoint.read_floats(name, {4, 2, 24, 24});
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 24; ++column)
      CHECK(right[row * 24 + column] == codes[(4 + row) * 48 + 24 + column] * 0.001f);
  }
}

TEST_CASE("each rank holds and saves its part of all biases, which go back to Hugging Face's form") {
  const Scratch scratch;
  const Model model = biased(gated_model());
  const Tensors tensors = executable_tensors(model, WeightNaming::kSharedOne, 19);
  write_tensors(scratch.path("in.safetensors"), tensors);
  TrainingJob job = job_of(model);
  job.plan.tp = job.plan.pp = job.plan.ep = 2;
  job.plan.sequence_parallel = true;
  WeightsRun run(scratch.path("in.safetensors"), job, false);
  const std::vector<HeldParameter> held = held_weights(run);
  const std::string saved = scratch.path("saved");
  save_parameters({.directory = saved, .degrees = {2, 2, 2}, .model = model, .step = 1, .config = ""}, held);
  const Checkpoint checkpoint(saved);
  require_executable(checkpoint, model);
  int biases = 0;
  for (const HeldParameter& parameter : held) {
    if (!is_bias(parameter.tensor)) continue;
    ++biases;
    CHECK(parameter.values.size() == 32);  // half of the 4 + 2 * 2 heads of 8
    const std::vector<double> loaded = load_parameter(checkpoint, model, parameter.tensor);
    CHECK(std::equal(loaded.begin(), loaded.end(), parameter.values.begin(), parameter.values.end()));
  }
  CHECK(biases == 4);  // a layer on each of two stages of two ranks
  convert({.in = saved, .to = "hf", .out = scratch.path("hf"), .model = ""}, ModelCatalog());
  const Checkpoint hf(scratch.path("hf"));
  require_executable(hf, model);
  CHECK(hf.index().weights.at("model.layers.1.self_attn.k_proj.bias").shape == std::vector<std::int64_t>{16});
}

TEST_CASE("weights that no run computes with are refused, not ignored") {
  const Scratch scratch;
  const Model model = biased(grouped_model());
  write_tensors(scratch.path("in.safetensors"), random_tensors(model, WeightNaming::kShared, 15));
  CHECK_THROWS_WITH(require_executable(Checkpoint(scratch.path("in.safetensors")), model),
                    scratch.path("in.safetensors") +
                        ": no run computes the bias of an output map: these weights of small can be "
                        "converted, not executed");
}

TEST_CASE("two runs of the same weights are aligned; a changed weight is found in its layer") {
  const Scratch scratch;
  const Model model = all_experts(latent_model());
  Tensors tensors = random_tensors(model, WeightNaming::kShared, 16);
  write_tensors(scratch.path("in.safetensors"), tensors);
  const auto dump = [&](const std::string& in, const Change& plan, const std::string& out) {
    TrainingJob job = job_of(model);
    plan(job);
    WeightsRun(scratch.path(in), job, false).dump().write(scratch.path(out));
    return scratch.path(out);
  };
  const std::string reference = dump("in.safetensors", alone, "a");
  for (const AlignedLayer& layer : align(dump("in.safetensors", alone, "b"), reference).layers)
    CHECK(layer.max_abs == 0);
  // Another order of sums in BF16 differs, within what BF16 allows.
  const Alignment cut = align(dump("in.safetensors", sequence_parallel, "c"), reference);
  INFO(to_text(cut));
  CHECK(cut.precision == Precision::kBf16);
  CHECK(cut.first_drift() == nullptr);
  CHECK(cut.layers.back().max_abs > 0);
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::string name = "model.layers." + std::to_string(layer) + ".self_attn.o_proj.weight";
    Tensors changed = tensors;
    Bytes& bytes = changed.at(name).second;
    const std::vector<float> large{8};
    const Bytes element = from_floats(StoredType::kBf16, large);
    std::copy(element.begin(), element.end(), bytes.begin());
    write_tensors(scratch.path("changed.safetensors"), changed);
    const Alignment alignment = align(dump("changed.safetensors", alone, "d"), reference);
    REQUIRE(alignment.first_drift() != nullptr);
    CHECK(alignment.first_drift()->name == "model.layers." + std::to_string(layer) + ".self_attn");
  }
}

}  // namespace moebius::test
