#include "workloads/study/mixed/mixed_commands.h"

#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "workloads/report/run_directory.h"
#include "workloads/report/wrapped_text.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/named_files.h"
#include "workloads/study/command_json.h"
#include "workloads/study/mixed/split_search.h"

namespace moebius {
namespace {

struct MatrixArguments {
  std::vector<std::string> chips;
  std::string node, fabric = "rail-optimised-clos-roce", out;
  bool json = false;
};

// What an option names in the catalog; its error says which option did.
template <class Look>
auto named_by(const char* option, Look look) {
  try {
    return look();
  } catch (const Error& error) {
    throw input_error(fmt::format("{}: {}", option, error.what()));
  }
}

int matrix(const MatrixArguments& arguments, const ChosenExecutor& executor) {
  // Its collectives draw as scenarios do that name no seed.
  CommandFacts facts{.kind = "matrix", .means = executor.means(), .seed = 1};
  const Library library(*executor.data);
  const FabricSpec fabric = named_by("--fabric", [&] { return library.hardware.fabric(arguments.fabric); });
  if (!arguments.out.empty()) require_writable(arguments.out);
  std::vector<EfficiencyMatrix> matrices;
  std::vector<std::string> chips;
  for (const std::string& name : arguments.chips) {
    const Accelerator chip = library.hardware.accelerator(name);
    if (chip.peak_of(DType::kBf16).value <= 0)
      throw input_error(
          fmt::format("{}: the catalog knows no rate of it for bf16, which the classes need", chip.id));
    const Node node = arguments.node.empty()
                          ? node_for(chip, library.hardware)
                          : named_by("--node", [&] { return library.hardware.node(arguments.node); });
    const Pool pool{.name = chip.id, .accelerator = chip, .node = node, .nodes = 2};
    if (const std::string problem = problem_of(pool); !problem.empty())
      throw input_error(fmt::format("--node: {}", problem));
    matrices.push_back(chip_matrix(chip, *make_cost_source(chip, *executor.data)));
    add_network(pool, fabric, library, executor.start, matrices.back());
    chips.push_back(chip.id);
  }
  facts.scenario = fmt::format("{} by {}", fmt::join(chips, ", "), arguments.fabric);  // there is no file
  if (!arguments.out.empty()) write_file(arguments.out, matrix_json(matrices));
  print(arguments.json ? with_facts(matrix_json(matrices), facts) : matrix_text(matrices));
  return 0;
}

struct SplitArguments {
  std::string scenario, out;
  Changes changes;
  std::optional<std::int64_t> finalists;
  bool json = false;
};

// The scenario by the best split, as it is named from where it is written.
std::string written(const SplitStudy& study, const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  return to_json(written_into(study.scenario, directory.string()).root) + "\n";
}

int split(const SplitArguments& arguments, const ChosenExecutor& executor) {
  constexpr std::int64_t kMostFinalists = 1000;
  CommandFacts facts{.kind = "split", .means = executor.means()};
  const std::int64_t finalists = arguments.finalists.value_or(4);
  if (finalists < 1 || finalists > kMostFinalists)
    throw input_error(fmt::format("--finalists: expected 1 to {}, found {}", kMostFinalists, finalists));
  require_apart("--out", arguments.out, arguments.scenario);
  if (!arguments.out.empty()) require_writable(arguments.out);
  const Library library(*executor.data);
  Document scenario = load_scenario(arguments.scenario);
  apply(arguments.changes, scenario);  // before pools change their places
  const SplitStudy study = study_split(
      {arguments.scenario, std::move(scenario), library, executor.start, static_cast<int>(finalists)});
  if (!arguments.out.empty()) write_file(arguments.out, written(study, arguments.out));
  facts.scenario = study.name;
  const Value* seed = study.scenario.root.find("seed");
  facts.seed =
      seed == nullptr ? 1 : static_cast<std::uint64_t>(seed->integer);  // as scenarios say that name none
  print(arguments.json ? with_facts(split_json(study), facts) : wrapped(split_text(study)));
  return 0;
}

}  // namespace

Command matrix_command(const ChosenExecutor& executor) {
  const auto arguments = std::make_shared<MatrixArguments>();
  const CommandOptions own{{.name = "CHIP",
                            .target = &arguments->chips,
                            .help = "names of `moebius list accelerators`",
                            .required = true,
                            .catalogs = {"accelerators"}},
                           {.name = "--node",
                            .target = &arguments->node,
                            .help = "that they stand in (default: the catalog's node that suits each best)",
                            .catalogs = {"nodes"}},
                           {.name = "--fabric",
                            .target = &arguments->fabric,
                            .help = "between two nodes (default: rail-optimised-clos-roce)",
                            .catalogs = {"fabrics"}},
                           {"--out", &arguments->out, "file for the matrices as JSON"},
                           {"--json", &arguments->json, "print the matrices as one JSON object"}};
  return {"matrix", "what share of its compute, memory and links a chip reaches, by class of op",
          joined({own, executor.options, {data_option(*executor.data)}}),
          [arguments, executor] { return matrix(*arguments, executor); }};
}

Command split_command(const ChosenExecutor& executor) {
  const auto arguments = std::make_shared<SplitArguments>();
  const CommandOptions own{
      {.name = "SCENARIO",
       .target = &arguments->scenario,
       .help = "training on pools of several kinds of chips",
       .required = true},
      {"--set", &arguments->changes.sets, "/json/pointer=value: changes the scenario; may be given again"},
      {"--seed", &arguments->changes.seed, "replaces the scenario's seed", seed_number},
      {"--finalists", &arguments->finalists,
       "interleaved splits that are carried out, the best by the matrices (default: 4)"},
      {"--out", &arguments->out, "file for the scenario by the best split"},
      {"--json", &arguments->json, "print the result as one JSON object"}};
  return {"split",
          "give a job to chips of several kinds: stages, layers and microbatches, against the parts alone",
          joined({own, executor.options, {data_option(*executor.data)}}),
          [arguments, executor] { return split(*arguments, executor); }};
}

}  // namespace moebius
