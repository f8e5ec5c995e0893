#include "workloads/study/placement/place_command.h"

#include <memory>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/new_file.h"
#include "workloads/report/run_directory.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/study/command_json.h"
#include "workloads/study/placement/placement_study.h"

namespace moebius {
namespace {

constexpr std::int64_t kMostFinalists = 64, kMostClusters = 100'000;

struct PlaceArguments {
  std::string scenario, out;
  Changes changes;
  std::optional<std::int64_t> finalists, fragmented;
  bool json = false;
};

std::int64_t within(const char* name, std::optional<std::int64_t> given, std::int64_t most,
                    std::int64_t otherwise) {
  if (given && (*given < 1 || *given > most))
    throw input_error(fmt::format("{}: expected 1 to {}, found {}", name, most, *given));
  return given.value_or(otherwise);
}

int place_fragmented(const PlaceArguments& arguments, const ChosenExecutor& executor) {
  CommandFacts facts{.kind = "placement", .means = executor.means()};
  facts.seed = arguments.changes.seed.value_or(1);
  const auto count = static_cast<int>(within("--fragmented", arguments.fragmented, kMostClusters, 1));
  const std::vector<FragmentedGain> gains =
      study_fragmented(*facts.seed, count, Library(*executor.data), executor.start);
  print(arguments.json ? with_facts(fragmented_json(gains), facts) : fragmented_text(gains));
  return 0;
}

int place(const PlaceArguments& arguments, const ChosenExecutor& executor) {
  if (arguments.scenario.empty() == !arguments.fragmented)
    throw input_error("place: expected either a scenario or --fragmented COUNT");
  if (arguments.fragmented && !arguments.out.empty())
    throw input_error(
        "place: --out keeps the placement of one scenario: expected a scenario, found --fragmented");
  if (arguments.fragmented && !arguments.changes.sets.empty())
    throw input_error("place: --set changes a scenario: expected a scenario, found --fragmented");
  if (arguments.fragmented && arguments.finalists)
    throw input_error(
        "place: --finalists are placements of one scenario: expected a scenario, found --fragmented");
  if (arguments.fragmented) return place_fragmented(arguments, executor);
  require_apart("--out", arguments.out, arguments.scenario);
  if (!arguments.out.empty()) require_writable(arguments.out);
  CommandFacts facts{.kind = "placement", .means = executor.means()};
  const Library library(*executor.data);
  Document scenario = load_scenario(arguments.scenario);
  apply(arguments.changes, scenario);
  const PlacementStudy study =
      study_placement({scenario, library, executor.start,
                       static_cast<int>(within("--finalists", arguments.finalists, kMostFinalists, 4))});
  const bool changed = !arguments.changes.sets.empty() || arguments.changes.seed;
  if (!arguments.out.empty())
    write_file(arguments.out, changed ? placed_scenario(study, scenario, arguments.out)
                                      : placed_scenario(study, arguments.scenario, arguments.out));
  facts.seed = study.seed;
  print(arguments.json ? with_facts(placement_json(study), facts) : placement_text(study));
  return 0;
}

}  // namespace

Command place_command(const ChosenExecutor& executor) {
  const auto arguments = std::make_shared<PlaceArguments>();
  const CommandOptions own{
      {"SCENARIO", &arguments->scenario, "training scenario; its /plan/placement/devices are free"},
      {"--set", &arguments->changes.sets, "/json/pointer=value: changes the scenario; may be given again"},
      {"--seed", &arguments->changes.seed, "replaces the scenario's seed; of --fragmented the first cluster",
       seed_number},
      {"--finalists", &arguments->finalists, "best placements by the estimate that are run (default: 4)"},
      {"--fragmented", &arguments->fragmented,
       "instead of a scenario: so many random clusters that others have taken a part of"},
      {"--out", &arguments->out, "file for a scenario that extends this one by the placement"},
      {"--json", &arguments->json, "print the result as one JSON object"}};
  return {"place", "lay ranks over devices by what they send each other; naive order beside it",
          joined({own, executor.options, {data_option(*executor.data)}}),
          [arguments, executor] { return place(*arguments, executor); }};
}

}  // namespace moebius
