#include "workloads/scenario/training_job_keys.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hw/json_text.h"
#include "workloads/scenario/adapter_keys.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/traffic_keys.h"
#include "workloads/serving/request_lengths.h"

namespace moebius {
namespace {

enum class TrainingKind : std::uint8_t { kPretrain, kSft, kRl, kScoring };

constexpr std::array kJobs{
    Named<TrainingKind>{"pretrain", TrainingKind::kPretrain, "every row is one sequence"},
    Named<TrainingKind>{"sft", TrainingKind::kSft,
                        "supervised fine-tuning: sequences of unlike length, packed into rows"},
    Named<TrainingKind>{"rl", TrainingKind::kRl,
                        "rollout, scoring, training and weight sync, one after the other"},
    Named<TrainingKind>{"scoring", TrainingKind::kScoring,
                        "forward passes alone, to the log-probabilities of the tokens"},
};
constexpr std::array kSyncs{
    Named<bool>{"broadcast", true, "each weight goes from a rank that trains it to all ranks"},
    Named<bool>{"none", false, "those who generate use the weights where they are"}};

constexpr std::int64_t kMostSequences = 1 << 22;  // of a rollout, as of any batch

constexpr const char* kLengthForms =
    "expected {\"uniform\": [LEAST, MOST]} or {\"lognormal\": {\"median\": TOKENS, \"sigma\": SIGMA}}";

SequenceLengths uniform_lengths(const Value& pair, const Place& place) {
  const std::optional<LengthEnds> ends = length_ends(pair);
  if (!ends)
    place.fail(fmt::format(
        "expected [LEAST, MOST], two lengths in tokens, at least 1 and the smaller one first, found {}",
        pair.excerpt()));
  return {.law = LengthLaw::kUniform,
          .least = static_cast<double>(ends->least),
          .most = static_cast<double>(ends->most)};
}

SequenceLengths lognormal_lengths(Reader form) {
  const double median = form.number("median", {1, 1 << 24}), sigma = form.number("sigma", {0, 8});
  form.finish();
  return {.law = LengthLaw::kLognormal, .median = median, .sigma = sigma};
}

SequenceLengths lengths_of(const Value& value, const Place& place) {
  if (value.kind != Value::Kind::kObject || value.keys.size() != 1)
    place.fail(fmt::format("{}, found {}", kLengthForms, value.excerpt()));
  Reader form(value, place);
  const std::string& law = value.keys.front();
  if (law != "uniform" && law != "lognormal")
    form.place_of(law).fail(fmt::format("unknown key {}: {}", json_excerpt(law), kLengthForms));
  const SequenceLengths lengths = form.has("lognormal")
                                      ? lognormal_lengths(form.object("lognormal"))
                                      : uniform_lengths(form.value("uniform"), form.place_of("uniform"));
  form.finish();
  return lengths;
}

void read_lengths(Section& section, TrainingKind kind, TrainingWorkload& workload) {
  const DescriptionPtr form = description_of("object", "of job \"sft\": tokens of its sequences");
  if (const Value* value = section.value("lengths", false, form))
    workload.lengths = lengths_of(*value, section.place_of("lengths"));
  const double share = section.number(
      "prompt_share", {0, 1}, 0, "of each sequence of job \"sft\", from its start: no loss is taken on it");
  if (kind == TrainingKind::kSft && !workload.lengths)
    section.place_of("lengths").fail(fmt::format("job \"sft\": {}, found none", kLengthForms));
  if (kind != TrainingKind::kSft && workload.lengths)
    section.place_of("lengths").fail("lengths are for job \"sft\" only");
  if (kind != TrainingKind::kSft && share > 0)
    section.place_of("prompt_share").fail("a share of prompts is for job \"sft\" only");
  if (workload.lengths) workload.lengths->prompt_share = share;
}

void read_rollout(Section section, Reinforcement& rl, bool wanted) {
  rl.rollout_rate = section.number("tokens_per_s_per_device", {0, 1e9}, 0,
                                   "generated tokens of a device, given; 0: `serving` is simulated");
  const DescriptionPtr form = description_of(
      "object", "the plan of a serving scenario on the same cluster, which generates the responses");
  const bool served = section.value("serving", false, form) != nullptr;
  section.finish();
  if (wanted && served == (rl.rollout_rate > 0))
    section.place_of("serving").fail("expected either tokens_per_s_per_device or a serving plan, found " +
                                     std::string(served ? "both" : "none"));
}

// Their mean: what is trained on has as many tokens together. The lengths themselves are the rollout's, whose
// scenario has them as the output of its requests (reinforcement_phases.cpp).
void read_response_lengths(Section& section, std::uint64_t seed, Reinforcement& rl) {
  const DescriptionPtr form = description_of(
      "object",
      "of single responses, where they differ: {\"uniform\": [LEAST, MOST]} or {\"lognormal\": "
      "{\"median\": TOKENS, \"sigma\": SIGMA, \"most\": TOKENS}}; response_tokens is then their mean");
  const Value* value = section.value("response_lengths", false, form);
  if (value == nullptr) return;
  const Place place = section.place_of("response_lengths");
  if (section.given("response_tokens"))
    place.fail("response_tokens is the mean of these: expected one of the two");
  if (rl.rollout_rate > 0) place.fail("lengths are of a rollout that is served: expected `rollout.serving`");
  if (rl.sequences() > kMostSequences)
    place.fail(fmt::format("expected at most {} sequences, found {}", kMostSequences, rl.sequences()));
  ServingWorkload drawn;
  drawn.requests = static_cast<int>(rl.sequences());
  drawn.output = length_range(*value, place);
  drawn.seed = seed;
  if (drawn.requests > 0)
    rl.response_tokens = std::llround(static_cast<double>(output_tokens(drawn)) / drawn.requests);
}

Reinforcement read_reinforcement(Section section, std::uint64_t seed, bool wanted) {
  constexpr Range kCount{0, 1 << 30};
  Reinforcement rl;
  rl.prompts = section.integer("prompts", kCount, 0, "of a step");
  rl.samples = section.integer("samples", kCount, 0, "responses to each prompt");
  rl.response_tokens = section.integer("response_tokens", kCount, 0,
                                       "of each response; the rest of sequence_length is its prompt");
  read_rollout(section.object("rollout", false, "how responses are generated"), rl, wanted);
  read_response_lengths(section, seed, rl);
  rl.reference = section.boolean("reference", true, "the first weights of the policy score each sequence");
  const DescriptionPtr form =
      description_of("", "the model that scores each sequence: as /model; absent: none");
  rl.reward = section.value("reward_model", false, form) != nullptr;
  rl.sync = section.choice<bool>("sync", kSyncs, true, "how the new weights reach those who generate");
  section.finish();
  return rl;
}

}  // namespace

void read_training_job(Section& workload, Scenario& scenario) {
  const auto kind =
      workload.choice<TrainingKind>("job", kJobs, TrainingKind::kPretrain, "what kind of training it is");
  scenario.training.forward_only = kind == TrainingKind::kScoring;
  read_lengths(workload, kind, scenario.training);
  const bool given = workload.given("rl"), wanted = kind == TrainingKind::kRl;
  const Reinforcement rl =
      read_reinforcement(workload.object("rl", false, "of job \"rl\": its phases"), scenario.seed, wanted);
  if (given && !wanted) workload.place_of("rl").fail("these are for job \"rl\" only");
  if (wanted) scenario.rl = rl;
  read_adapters(workload, scenario.training.adapters);
}

void check_training_job(const Scenario& scenario, const Document& document) {
  const TrainingWorkload& work = scenario.training;
  if (work.lengths) {
    if (scenario.plan.cp > 1)
      place_at(document, "/plan/cp")
          .fail(fmt::format("packed sequences are not cut: expected 1, found {}", scenario.plan.cp));
    const double longest =
        work.lengths->law == LengthLaw::kUniform ? work.lengths->most : work.lengths->median;
    if (longest > static_cast<double>(work.sequence_length))
      place_at(document, "/workload/lengths")
          .fail(fmt::format("expected at most the sequence_length of {} tokens, found {}",
                            work.sequence_length, longest));
  }
  check_adapters(scenario, document);
  if (!scenario.rl) return;
  const Reinforcement& rl = *scenario.rl;
  if (rl.sequences() < 1 || rl.sequences() % work.global_batch != 0)
    place_at(document, "/workload/rl/prompts")
        .fail(fmt::format("{} prompts x {} samples = {} sequences are no multiple of the {} of global_batch",
                          rl.prompts, rl.samples, rl.sequences(), work.global_batch));
  if (rl.response_tokens < 1 || rl.response_tokens >= work.sequence_length)
    place_at(document, "/workload/rl/response_tokens")
        .fail(fmt::format("expected at least 1 and fewer than the sequence_length of {}, found {}",
                          work.sequence_length, rl.response_tokens));
  if (!scenario.save.empty() || scenario.resume)
    place_at(document, "/plan").fail("a step of reinforcement learning is not saved or resumed so far");
  if (!scenario.faults.empty())
    place_at(document, "/faults")
        .fail("faults are not followed through the phases of job \"rl\" so far: expected none");
}

}  // namespace moebius
