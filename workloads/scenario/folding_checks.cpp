// Relations between the degrees over which experts and sequences are spread: experts that several ranks
// share, attention over ranks that do not gather keys.
#include <fmt/format.h>

#include "hw/mixed_pools.h"
#include "workloads/scenario/scenario_parts.h"

namespace moebius {
namespace {

class FoldingChecks {
 public:
  FoldingChecks(const Scenario& scenario, const Document& document)
      : scenario_(scenario), plan_(scenario.plan), model_(scenario.model), document_(document) {}

  void run() const {
    if (plan_.expert_tp > 1) expert_parts();
    if (plan_.zigzag()) ring();
    if (plan_.cp > 1 && plan_.context == ContextKind::kUlysses) ulysses();
    if (plan_.cp > 1 && plan_.context == ContextKind::kAllGather) chunks();
  }

 private:
  template <class... Args>
  void require(bool holds, const char* pointer, fmt::format_string<Args...> sentence, Args&&... args) const {
    if (!holds) place_at(document_, pointer).fail(fmt::format(sentence, std::forward<Args>(args)...));
  }

  // Those ranks and expert parallelism together divide a stage, however attention is spread over it.
  void expert_parts() const {
    const char* at = "/plan/tp/expert";
    const int degree = plan_.expert_tp, stage = plan_.tp * plan_.cp * plan_.dp;
    require(model_.experts.routed > 0, at, "degree {} for experts, of which {} has none", degree, model_.id);
    require(model_.experts.width % degree == 0, at,
            "degree of experts {} does not divide the {} columns of an expert of {}", degree,
            model_.experts.width, model_.id);
    require(stage % plan_.expert_ranks() == 0, at,
            "degree of experts {} x ep {} = {} ranks do not divide the tp {} x cp {} x dp {} = {} ranks of a "
            "pipeline stage",
            degree, plan_.ep, plan_.expert_ranks(), plan_.tp, plan_.cp, plan_.dp, stage);
    require(scenario_.weights == "random" && scenario_.save.empty(), at,
            "checkpoints hold whole experts: expected 1, found {}", degree);
    require(!several_kinds(*scenario_.cluster), at, "pools of different chips need whole experts, found {}",
            degree);
  }

  // Each sequence is cut into two chunks a rank, and all ranks see all keys.
  void ring() const {
    const int rows = plan_.sequence_parallel ? plan_.tp : 1;
    const std::int64_t parts = std::int64_t{2} * plan_.cp * rows;
    require(scenario_.training.sequence_length % parts == 0, "/workload/sequence_length",
            "a ring cuts {} tokens into two chunks a rank: expected a multiple of 2 x cp {} x tp {} = {}",
            scenario_.training.sequence_length, plan_.cp, rows, parts);
    for (int layer = 0; layer < model_.layers; ++layer)
      require(model_.window(layer) == 0 && model_.chunk(layer) == 0, "/plan/context",
              "\"ring\" sends all keys to all ranks, but layer {} of {} sees a window: expected "
              "\"all-gather\" or \"ulysses\"",
              layer, model_.id);
  }

  void ulysses() const {
    const char* at = "/plan/context";
    const int ranks = plan_.tp * plan_.cp;
    const int heads = model_.attention == AttentionKind::kMla ? model_.heads : model_.kv_heads;
    require(
        heads % ranks == 0, at,
        "\"ulysses\" cuts heads over tp {} x cp {} = {} ranks, which do not divide the {} key-value heads "
        "of {}",
        plan_.tp, plan_.cp, ranks, heads, model_.id);
    for (int layer = 0; layer < model_.layers; ++layer)
      require(model_.chunk(layer) == 0, at,
              "\"ulysses\" does not cut the chunks in which layer {} of {} attends: expected \"all-gather\"",
              layer, model_.id);
  }

  // A chunk that two ranks share would be more work for one of them than for the other.
  void chunks() const {
    const std::int64_t length = scenario_.training.sequence_length, rows = length / plan_.cp;
    const int chunk = model_.attention_chunk;
    require(chunk == 0 || length <= chunk || rows % chunk == 0, "/plan/cp",
            "{} attends in chunks of {} tokens, which ranks do not share: expected /workload/sequence_length "
            "{} / cp {} = {} to be a multiple of it",
            model_.id, chunk, length, plan_.cp, rows);
  }

  const Scenario& scenario_;
  const TrainingPlan& plan_;
  const Model& model_;
  const Document& document_;
};

}  // namespace

void check_folding(const Scenario& scenario, const Document& document) {
  FoldingChecks(scenario, document).run();
}

}  // namespace moebius
