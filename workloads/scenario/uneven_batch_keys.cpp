#include "workloads/scenario/uneven_batch_keys.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"
#include "workloads/training/pipeline/uneven_batches.h"

namespace moebius {
namespace {

constexpr std::string_view kEqual = "equal", kAuto = "auto";
constexpr const char* kMicrobatches = "/plan/dp/microbatches";

int number_of(const Section& section, const Value& item, std::size_t replica) {
  const bool is_number = item.kind == Value::Kind::kInteger || item.kind == Value::Kind::kNumber;
  const bool counts =
      is_number && item.number >= 1 && item.number <= 1 << 20 && item.number == std::floor(item.number);
  if (!counts)
    section.place_of("microbatches")
        .fail(fmt::format("expected at least 1 microbatch on replica {}, found {}", replica, item.excerpt()));
  return static_cast<int>(item.number);
}

class BatchChecks {
 public:
  BatchChecks(const Scenario& scenario, const Document& document)
      : plan_(scenario.plan), work_(scenario.training), document_(document) {}

  void run() const {
    whole_batch();
    passes();
    meetings();
  }

 private:
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> sentence, Args&&... args) const {
    if (!holds) place_at(document_, kMicrobatches).fail(fmt::format(sentence, std::forward<Args>(args)...));
  }

  std::int64_t microbatches() const { return work_.global_batch / work_.micro_batch; }

  void whole_batch() const {
    require(work_.global_batch % work_.micro_batch == 0, "{} sequences are not a multiple of micro_batch {}",
            work_.global_batch, work_.micro_batch);
    require(microbatches() >= plan_.dp, "{} microbatches for {} replicas: each takes at least one",
            microbatches(), plan_.dp);
    if (plan_.auto_microbatches) return;
    const auto given = static_cast<int>(plan_.microbatches.size());
    require(given == plan_.dp, "microbatches of {} replicas, but there are {}", given, plan_.dp);
    const std::int64_t sum =
        std::accumulate(plan_.microbatches.begin(), plan_.microbatches.end(), std::int64_t{0});
    require(sum == microbatches(), "{} microbatches in all, but a step has {}", sum, microbatches());
  }

  // Orders that count on equal rounds, and what all replicas do in every microbatch.
  void passes() const {
    const StagePlacement placement(plan_);
    require(placement.chunks() == 1 || plan_.schedule == PipelineKind::kZbV,
            "schedules \"interleaved\", \"dualpipe\" and \"dualpipev\" take microbatches in rounds of all "
            "ranks: unequal numbers need another");
    require(
        plan_.zero < 2,
        "zero 2 and 3 sum gradients over all replicas in every microbatch: unequal numbers need zero 0 or "
        "1, found {}",
        plan_.zero);
    require(!work_.lengths, "packed sequences are dealt out in equal numbers: expected \"equal\"");
    require(!work_.forward_only, "scoring deals out its sequences in equal numbers: expected \"equal\"");
  }

  void meetings() const {
    const int together = replicas_that_meet(plan_);
    require(plan_.dp % together == 0, "{} replicas meet in groups of experts or dense MLPs of {}", plan_.dp,
            together);
    require(!plan_.auto_microbatches || microbatches() % together == 0,
            "{} microbatches do not divide among replicas that meet {} by {}", microbatches(), together,
            together);
    for (int replica = 0; !plan_.auto_microbatches && replica < plan_.dp; ++replica) {
      const int first = replica / together * together;
      require(
          plan_.microbatches[replica] == plan_.microbatches[first],
          "replicas {} and {} meet in every microbatch, in a group of experts or dense MLPs: {} and {} are "
          "not equal",
          first, replica, plan_.microbatches[first], plan_.microbatches[replica]);
    }
  }

  const TrainingPlan& plan_;
  const TrainingWorkload& work_;
  const Document& document_;
};

}  // namespace

void read_microbatches(Section& section, TrainingPlan& plan) {
  const DescriptionPtr form = description_of(
      "",
      "how a step's microbatches are dealt out; equal: as many to each replica; auto: by the speed of their "
      "chips, so that all end together; or the number of each replica, in their order");
  set_keyword(form->keywords, "type", array_value({text_value("string"), text_value("array")}));
  set_keyword(form->keywords, "default", text_value(kEqual));
  const Value* value = section.value("microbatches", false, form);
  if (value == nullptr || (value->kind == Value::Kind::kString && value->text == kEqual)) return;
  plan.auto_microbatches = value->kind == Value::Kind::kString && value->text == kAuto;
  if (plan.auto_microbatches) return;
  if (value->kind != Value::Kind::kArray || value->items.empty())
    section.place_of("microbatches")
        .fail("expected \"equal\", \"auto\" or the microbatches of each replica, found " + value->excerpt());
  for (std::size_t i = 0; i < value->items.size(); ++i)
    plan.microbatches.push_back(number_of(section, value->items[i], i));
}

void check_microbatches(const Scenario& scenario, const Document& document) {
  if (scenario.plan.uneven_batches()) BatchChecks(scenario, document).run();
}

}  // namespace moebius
