#include "workloads/perform/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <unordered_set>
#include <vector>

#include "workloads/advice/advice.h"
#include "workloads/listing/table_text.h"
#include "workloads/report/heat_map.h"
#include "workloads/report/wrapped_text.h"

namespace moebius {

namespace {

struct Row {
  const OpRow* op;
  Span span;
  double seconds() const { return (span.end - std::max(span.start, span.work_start)).seconds(); }
};

constexpr std::int32_t kAnyStep = -1;

using Submissions = std::vector<SubmissionRow>;

// Those of which spans were kept: timeline.window and timeline.max_bytes cut the others.
Submissions kept_submissions(const Timeline& timeline) {
  std::unordered_set<std::int32_t> kept;
  for (const Span& span : timeline.spans) kept.insert(span.sequence);
  Submissions rows = timeline.submissions;
  std::erase_if(rows, [&](const SubmissionRow& row) { return !kept.contains(row.sequence); });
  return rows;
}

// Classes by the time they compute, longest first: of a service those that take part in an iteration.
std::vector<std::int32_t> classes_by_work(const Timeline& timeline, const Submissions& submissions,
                                          std::int32_t step) {
  std::vector<std::int64_t> busy(timeline.class_ranks.size());
  for (const Span& span : timeline.spans) {
    if (span.lane == Lane::kCompute) busy[span.rank_class] += (span.end - span.start).ns;
  }
  std::vector<bool> takes_part(busy.size());
  for (const SubmissionRow& row : submissions)
    if (step == kAnyStep || row.step == step) takes_part[row.rank_class] = true;
  std::vector<std::int32_t> classes;
  for (std::size_t c = 0; c < busy.size(); ++c)
    if (takes_part[c]) classes.push_back(static_cast<std::int32_t>(c));
  std::stable_sort(classes.begin(), classes.end(),
                   [&](std::int32_t a, std::int32_t b) { return busy[a] > busy[b]; });
  return classes;
}

// Submissions of one class and of the microbatch in the middle of a step's work, by sequence.
std::map<std::int32_t, const SubmissionRow*> middle_submissions(const Submissions& submissions,
                                                                std::int32_t rank_class, std::int32_t step) {
  std::int32_t last = 0;
  for (const SubmissionRow& row : submissions) {
    if (row.rank_class == rank_class && row.step == step) last = std::max(last, row.microbatch);
  }
  std::map<std::int32_t, const SubmissionRow*> chosen;
  for (const SubmissionRow& row : submissions) {
    if (row.rank_class == rank_class && row.step == step && row.microbatch == last / 2)
      chosen[row.sequence] = &row;
  }
  return chosen;
}

std::vector<Row> rows_of(const Timeline& timeline,
                         const std::map<std::int32_t, const SubmissionRow*>& submissions) {
  std::map<std::pair<std::int32_t, std::int32_t>, const OpRow*> ops;
  for (const OpRow& op : timeline.ops) ops[{op.fragment, op.index}] = &op;
  std::vector<Row> rows;
  for (const Span& span : timeline.spans) {
    const auto found = submissions.find(span.sequence);
    if (found != submissions.end()) rows.push_back({ops.at({found->second->fragment, span.op}), span});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.span.start < b.span.start; });
  return rows;
}

std::string shape_text(const Shape& shape) {
  std::string text = fmt::format("m {} n {}", shape.m, shape.n);
  if (shape.k > 0) text += fmt::format(" k {}", shape.k);
  if (shape.groups > 0) text += fmt::format(" groups {}", shape.groups);
  if (shape.heads > 0) text += fmt::format(" heads {}x{}", shape.heads, shape.head_dim);
  if (shape.kv > 0) text += fmt::format(" kv {}", shape.kv);
  return text;
}

std::string layers_table(const std::vector<Row>& rows) {
  struct Sums {
    std::array<double, kNumPhases> compute{};
    double communication = 0;
  };
  std::map<int, Sums> layers;
  for (const Row& row : rows) {
    Sums& sums = layers[row.op->layer];
    if (is_communication(row.op->kind)) {
      sums.communication += row.seconds();
    } else {
      sums.compute[static_cast<int>(row.op->phase)] += row.seconds();
    }
  }
  std::string text = fmt::format("  {:>6} {:>12} {:>12} {:>12} {:>12} {:>14}\n", "layer", "forward",
                                 "backward", "weight", "compute", "communication");
  for (const auto& [layer, sums] : layers) {
    const auto of = [&sums = sums](Phase phase) { return 1e3 * sums.compute[static_cast<int>(phase)]; };
    const double three = of(Phase::kForward) + of(Phase::kBackward) + of(Phase::kWeight);
    text += fmt::format("  {:>6} {:>9.3f} ms {:>9.3f} ms {:>9.3f} ms {:>9.3f} ms {:>11.3f} ms\n",
                        layer < 0 ? "-" : std::to_string(layer), of(Phase::kForward), of(Phase::kBackward),
                        of(Phase::kWeight), three, 1e3 * sums.communication);
  }
  return text;
}

int middle_layer(const std::vector<Row>& rows) {
  std::vector<int> layers;
  for (const Row& row : rows) {
    if (row.op->layer >= 0) layers.push_back(row.op->layer);
  }
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers.empty() ? -1 : layers[layers.size() / 2];
}

std::string ops_table(const std::vector<Row>& rows, int layer) {
  TextTable table;
  for (const Row& row : rows) {
    if (row.op->layer != layer) continue;
    const std::string size =
        is_communication(row.op->kind) ? payload_text(*row.op) : shape_text(row.op->shape);
    const std::string error = row.span.error > 0 ? fmt::format(", ±{:.0f}%", 100 * row.span.error) : "";
    table.push_back({std::string(to_string(row.op->phase)), std::string(to_string(row.op->role)),
                     std::string(to_string(row.op->kind)), std::string(to_string(row.op->lane)), size,
                     fmt::format("{:.1f} us", 1e6 * row.seconds()),
                     std::string(to_string(row.span.origin)) + error});
  }
  return fitted({{.head = "phase"},
                 {.head = "role"},
                 {.head = "kind"},
                 {.head = "lane"},
                 {.head = "shape", .folds = true},
                 {.head = "time", .right = true},
                 {.head = "known from"}},
                table);
}

std::string class_text(const Timeline& timeline, std::int32_t rank_class) {
  return fmt::format("class {}: {} ranks from rank {}", rank_class, timeline.class_sizes[rank_class],
                     timeline.class_ranks[rank_class]);
}

std::int32_t typical_class(const Timeline& timeline, const Submissions& submissions) {
  const std::vector<std::int32_t> classes = classes_by_work(timeline, submissions, kAnyStep);
  return classes[classes.size() / 2];
}

// `typical` takes part in it.
std::string explain_step(const Timeline& timeline, const Submissions& submissions, std::int32_t step,
                         std::int32_t typical) {
  const std::int32_t busiest = classes_by_work(timeline, submissions, step).front();
  const std::vector<Row> rows = rows_of(timeline, middle_submissions(submissions, typical, step));
  const int layer = middle_layer(rows);
  std::string text = fmt::format("busiest {}\n", class_text(timeline, busiest));
  text += layers_table(rows_of(timeline, middle_submissions(submissions, busiest, step)));
  if (typical != busiest)
    text += fmt::format("\ntypical {}\n{}", class_text(timeline, typical), layers_table(rows));
  text += fmt::format("\nops of {} of class {}, in the order they start\n",
                      layer < 0 ? "no layer" : fmt::format("layer {}", layer), typical);
  return text + ops_table(rows, layer);
}

// Iterations of a service, of which not every class takes part in each.
std::vector<std::int32_t> steps_of(const Submissions& submissions, std::int32_t rank_class) {
  std::vector<std::int32_t> steps;
  for (const SubmissionRow& row : submissions)
    if (row.rank_class == rank_class) steps.push_back(row.step);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

std::string explain_iterations(const Timeline& timeline) {
  const Submissions submissions = kept_submissions(timeline);
  const std::int32_t typical = typical_class(timeline, submissions);
  const std::vector<std::int32_t> steps = steps_of(submissions, typical);
  const std::size_t middle = steps.size() / 2;
  const std::string of_class =
      timeline.class_ranks.size() > 1 ? fmt::format(" of class {}", typical) : std::string();
  std::string text = fmt::format("the first of {} iterations{}, by layer\n\n{}", steps.size(), of_class,
                                 explain_step(timeline, submissions, steps.front(), typical));
  if (middle > 0)
    text += fmt::format("\niteration {} of {}{}, by layer\n\n{}", middle + 1, steps.size(), of_class,
                        explain_step(timeline, submissions, steps[middle], typical));
  return text;
}

std::string explain_microbatch(const Timeline& timeline) {
  const Submissions submissions = kept_submissions(timeline);
  const std::int32_t typical = typical_class(timeline, submissions);
  const std::vector<std::int32_t> steps = steps_of(submissions, typical);
  return "one microbatch from the middle of the run, by layer\n\n" +
         explain_step(timeline, submissions, steps[steps.size() / 2], typical);
}

// Of one operation, which has neither layers nor microbatches.
std::string explain_collective(const Timeline& timeline) {
  const Submissions submissions = kept_submissions(timeline);
  const std::int32_t typical = typical_class(timeline, submissions);
  const std::vector<std::int32_t> steps = steps_of(submissions, typical);
  const std::vector<Row> rows =
      rows_of(timeline, middle_submissions(submissions, typical, steps[steps.size() / 2]));
  return fmt::format("ops of {}, in the order they start\n", class_text(timeline, typical)) +
         ops_table(rows, middle_layer(rows));
}

bool keeps_ops(const Timeline& timeline) {
  const std::pair<std::string, std::string> fact{"timeline_detail", to_string(Detail::kOps)};
  return std::find(timeline.facts.begin(), timeline.facts.end(), fact) != timeline.facts.end();
}

}  // namespace

void keep_ops(Scenario& scenario) {
  if (scenario.kind == ScenarioKind::kServing && scenario.timeline.detail == Detail::kSteps)
    scenario.timeline.detail = Detail::kOps;
}

std::string explain(const Timeline& timeline, ScenarioKind kind) {
  if (timeline.spans.empty() || timeline.ops.empty() || !keeps_ops(timeline)) {
    return "nothing to explain: the timeline keeps no ops (timeline.detail, timeline.window)\n";
  }
  std::string text = kind == ScenarioKind::kServing      ? explain_iterations(timeline)
                     : kind == ScenarioKind::kCollective ? explain_collective(timeline)
                                                         : explain_microbatch(timeline);
  if (const HeatMap map = heat_map(timeline); !map.empty()) text += fmt::format("\n{}", to_text(map));
  return text;
}

std::string explain_run(const Outcome& outcome) {
  std::string text = explain(outcome.timeline, outcome.report.scenario->kind);
  const std::string choices = choices_text(outcome.report.facts.collectives);
  if (!choices.empty()) text.append("\n").append(choices);
  if (outcome.report.advice) text.append("\n").append(to_text(*outcome.report.advice));
  return wrapped(text);
}

}  // namespace moebius
