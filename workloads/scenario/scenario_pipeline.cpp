// The pipeline of a training plan: its keys, and what its schedule needs of the others.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "workloads/scenario/scenario_parts.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

namespace {

constexpr std::array kSchedules{
    Named<PipelineKind>{"1f1b", PipelineKind::k1F1B,
                        "one forward, one backward: stage s keeps at most p-s microbatches alive"},
    Named<PipelineKind>{"gpipe", PipelineKind::kGpipe,
                        "all forward, then all backward: every microbatch stays alive"},
    Named<PipelineKind>{"interleaved", PipelineKind::kInterleaved,
                        "1f1b with `virtual` stages on a rank: a bubble as many times smaller"},
    Named<PipelineKind>{"zb-h1", PipelineKind::kZbH1,
                        "zero bubble: as 1f1b, gradients of weights later, to fill the end"},
    Named<PipelineKind>{"zb-v", PipelineKind::kZbV,
                        "zero bubble: two stages on a rank, there and back, gradients of weights last"},
    Named<PipelineKind>{"dualpipe", PipelineKind::kDualPipe,
                        "DeepSeek-V3: from both ends at once, forward beside backward; parameters twice"},
    Named<PipelineKind>{"dualpipev", PipelineKind::kDualPipeV,
                        "dualpipe cut in half: two stages on a rank, there and back"},
};

constexpr Named<Slicing> kSlicings[] = {
    {"balanced", Slicing::kBalanced, ""},
    {"even", Slicing::kEven, ""},
    {"even-with-ends", Slicing::kEvenWithEnds, ""},
    {"dynamic", Slicing::kDynamic, ""},
};

std::string_view name_of(PipelineKind kind) {
  const auto row = std::find_if(kSchedules.begin(), kSchedules.end(),
                                [&](const Named<PipelineKind>& row) { return row.value == kind; });
  return row->name;
}

std::string_view slicing_name(Slicing slicing) {
  for (const Named<Slicing>& row : kSlicings)
    if (row.value == slicing) return row.name;
  return "";
}

// A name, or the number of layers of each stage.
std::vector<int> read_slicing(Section& section, Slicing& slicing) {
  const DescriptionPtr form = description_of(
      "",
      "how layers are spread over stages; balanced: so that the stage with most FLOPs has least; even: as "
      "many on "
      "each, as Megatron-LM cuts by default; even-with-ends: the same, embedding and head counted as a layer "
      "each; "
      "dynamic: so that the slowest pipeline rank is fastest, by the costs of ops, within the memory of its "
      "devices; or the layers of each stage, in their order");
  set_keyword(form->keywords, "type", array_value({text_value("string"), text_value("array")}));
  set_keyword(form->keywords, "default", text_value(slicing_name(slicing)));
  const Value* value = section.value("slicing", false, form);
  if (value == nullptr) return {};
  for (const Named<Slicing>& row : kSlicings) {
    if (value->kind != Value::Kind::kString || value->text != row.name) continue;
    slicing = row.value;
    return {};
  }
  std::vector<int> layers;
  const bool is_list = value->kind == Value::Kind::kArray && !value->items.empty();
  for (std::size_t i = 0; is_list && i < value->items.size(); ++i) {
    const Value& item = value->items[i];
    const bool is_number = item.kind == Value::Kind::kInteger || item.kind == Value::Kind::kNumber;
    const bool counts =
        is_number && item.number >= 0 && item.number <= 1 << 20 && item.number == std::floor(item.number);
    const bool end = i == 0 || i + 1 == value->items.size();  // has an embedding or a head
    if (!counts || (!end && item.number < 1))
      section.place_of("slicing").fail(fmt::format("expected at least {} layer{} on stage {}, found {}",
                                                   end ? 0 : 1, end ? "s" : "", i, item.excerpt()));
    layers.push_back(static_cast<int>(item.number));
  }
  if (!is_list)
    section.place_of("slicing").fail(
        "expected \"balanced\", \"even\", \"even-with-ends\", \"dynamic\" or the layers of each stage, "
        "found " +
        value->excerpt());
  return layers;
}

class PipelineChecks {
 public:
  PipelineChecks(const Scenario& scenario, const Document& document)
      : plan_(scenario.plan), scenario_(scenario), document_(document), placement_(scenario.plan) {}

  void stages() const {
    chunks();
    layers();
  }

  void passes() const {
    microbatches();
    messages();
    two_batch();
  }

 private:
  template <class... Args>
  void require(bool holds, const char* pointer, fmt::format_string<Args...> sentence, Args&&... args) const {
    if (!holds) place_at(document_, pointer).fail(fmt::format(sentence, std::forward<Args>(args)...));
  }

  std::string_view schedule() const { return name_of(plan_.schedule); }

  void chunks() const {
    const bool interleaved = plan_.schedule == PipelineKind::kInterleaved;
    require(!interleaved || plan_.chunks > 1, "/plan/pp/virtual",
            "schedule \"interleaved\" needs at least 2 stages on a rank, found {}", plan_.chunks);
    require(interleaved || plan_.chunks == 1, "/plan/pp/virtual",
            "schedule \"{}\" puts {} on a rank by itself: {} are for \"interleaved\"", schedule(),
            placement_.chunks() == 1 ? "one stage" : "two stages", plan_.chunks);
    require(placement_.chunks() == 1 || plan_.pp > 1, "/plan/pp/degree",
            "schedule \"{}\" needs at least 2 pipeline ranks, found 1", schedule());
    require(!placement_.both_ways() || plan_.pp % 2 == 0, "/plan/pp/degree",
            "schedule \"{}\" needs an even number of pipeline ranks, found {}", schedule(), plan_.pp);
  }

  void layers() const {
    const int stages = placement_.stages(), layers = scenario_.model.layers;
    const bool with_ends = plan_.slicing == Slicing::kEvenWithEnds || !plan_.layers.empty();
    require(layers + (with_ends ? 2 : 0) >= stages, "/plan/pp/degree",
            "the {} layers of {} cannot fill {} pipeline stages", layers, scenario_.model.id, stages);
    require(plan_.slicing != Slicing::kDynamic || plan_.recompute != RecomputePolicy::kHybrid,
            "/plan/pp/slicing",
            "\"dynamic\" weighs what a layer takes, which \"hybrid\" recomputation chooses by the slices: "
            "expected another policy");
    if (plan_.layers.empty()) return even(stages, layers);
    const auto given = static_cast<int>(plan_.layers.size());
    const int each = stages / plan_.pp;
    const std::string of_ranks = each > 1 ? fmt::format(", {} on each of {} ranks", each, plan_.pp) : "";
    require(given == stages, "/plan/pp/slicing", "layers of {} stages, but there are {}{}", given, stages,
            of_ranks);
    const std::int64_t sum = std::accumulate(plan_.layers.begin(), plan_.layers.end(), std::int64_t{0});
    require(sum == layers, "/plan/pp/slicing", "{} layers in all, but {} has {}", sum, scenario_.model.id,
            layers);
  }

  void even(int stages, int layers) const {
    const bool with_ends = plan_.slicing == Slicing::kEvenWithEnds;
    if (!with_ends && plan_.slicing != Slicing::kEven) return;
    const int shared = layers + (with_ends ? 2 : 0);
    const char* ends = with_ends ? ", embedding and head counted as one each," : "";
    require(shared % stages == 0, "/plan/pp/slicing", "{} layers{} do not divide over {} stages", shared,
            ends, stages);
  }

  void messages() const {
    const auto& work = scenario_.training;
    const std::int64_t tokens = work.micro_batch * work.sequence_length / plan_.cp;
    require(!plan_.cut_messages || (plan_.tp > 1 && !plan_.sequence_parallel), "/plan/pp/cut_messages",
            "expected tensor-parallel ranks that hold the same activations, found {}",
            plan_.tp > 1 ? "sequence_parallel, which cuts them already" : "one rank");
    require(!plan_.cut_messages || tokens % plan_.tp == 0, "/plan/pp/cut_messages",
            "{} tokens of a microbatch cannot be cut over {} tensor-parallel ranks", tokens, plan_.tp);
  }

  void microbatches() const {
    const int found = scenario_.training.num_microbatches(plan_);
    const char* at = "/workload/global_batch";
    require(
        plan_.schedule != PipelineKind::kInterleaved || found % plan_.pp == 0, at,
        "schedule \"interleaved\" takes microbatches in groups of {} pipeline ranks: {} are not a multiple",
        plan_.pp, found);
    const bool dual = plan_.schedule == PipelineKind::kDualPipe || plan_.schedule == PipelineKind::kDualPipeV;
    require(!dual || found >= 2 * plan_.pp, at,
            "schedule \"{}\" needs at least 2 microbatches for each of {} pipeline ranks, found {}",
            schedule(), plan_.pp, found);
    require(!placement_.both_ways() || found % 2 == 0, at,
            "schedule \"{}\" enters equally many microbatches at both ends, found {}", schedule(), found);
  }

  void two_batch() const {
    if (!plan_.overlap_two_batch) return;
    const char* at = "/plan/overlap/two_batch";
    require(plan_.schedule == PipelineKind::k1F1B || plan_.schedule == PipelineKind::kInterleaved, at,
            "two_batch is for schedules \"1f1b\" and \"interleaved\", found \"{}\"", schedule());
    require(plan_.overlap_dispatch_combine, at, "two_batch needs overlap/dispatch_combine true, found false");
  }

  const TrainingPlan& plan_;
  const Scenario& scenario_;
  const Document& document_;
  StagePlacement placement_;
};

}  // namespace

std::span<const Named<PipelineKind>> pipeline_schedules() {
  return kSchedules;
}

void read_pipeline(Section section, TrainingPlan& plan) {
  constexpr Range kDegree{1, 1 << 20};
  plan.pp = static_cast<int>(section.integer("degree", kDegree, 1, "pipeline ranks"));
  plan.schedule =
      section.choice<PipelineKind>("schedule", kSchedules, PipelineKind::k1F1B, "order of microbatches");
  plan.chunks = static_cast<int>(
      section.integer("virtual", {1, 32}, 1, "stages on a rank, of schedule \"interleaved\""));
  plan.layers = read_slicing(section, plan.slicing);
  plan.blocking_messages = section.boolean("blocking_messages", plan.blocking_messages,
                                           "a pass begins when the messages of those before it have arrived");
  plan.cut_messages =
      section.boolean("cut_messages", false,
                      "tensor-parallel ranks send a share of a message each, and gather what they received");
  section.finish();
}

void check_stages(const Scenario& scenario, const Document& document) {
  PipelineChecks(scenario, document).stages();
}

void check_passes(const Scenario& scenario, const Document& document) {
  PipelineChecks(scenario, document).passes();
}

}  // namespace moebius
