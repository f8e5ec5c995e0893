#include "workloads/study/search/search_command.h"

#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/checkpoint/interruption.h"
#include "workloads/command_line/scenario_commands.h"
#include "workloads/progress_bar.h"
#include "workloads/report/run_directory.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/study/search/training_search.h"

namespace moebius {
namespace {

struct SearchArguments {
  ScenarioArguments scenario;
  SearchGoal goal = SearchGoal::kStepTime;
  std::string space, out, plot, write;
  std::optional<std::int64_t> top, refine;
  double time_limit = 0;
  bool json = false, exhaustive = false;
};

int number(const std::optional<std::int64_t>& given, int otherwise, int least, const char* option) {
  constexpr int kMost = 10'000;
  if (!given) return otherwise;
  if (*given < least || *given > kMost)
    throw input_error(fmt::format("{}: expected {} to {}, found {}", option, least, kMost, *given));
  return static_cast<int>(*given);
}

Document document_of(const ScenarioArguments& arguments) {
  Document document = load_scenario(arguments.file);
  for (const std::string& set : arguments.changes.sets) {
    const std::size_t equals = set.find('=');
    if (set.empty() || set[0] != '/' || equals == std::string::npos)
      throw input_error(fmt::format("--set: expected /json/pointer=value, found \"{}\"", set));
    set_at_pointer(document, set.substr(0, equals), set.substr(equals + 1));
  }
  if (arguments.changes.seed) set_at_pointer(document, "/seed", std::to_string(*arguments.changes.seed));
  return document;
}

void require_training(const Document& document) {
  const Value* kind = document.root.kind == Value::Kind::kObject ? document.root.find("kind") : nullptr;
  if (kind != nullptr && kind->text != "training")
    place_at(document, "/kind")
        .fail(fmt::format("a search is for \"training\", found {}: `moebius sweep` varies any scenario",
                          kind->excerpt()));
}

// Paths in the scenario stay relative to where it stood; a search changes none of them.
std::string winner(Document document, const SearchResult& result) {
  for (const Assignment& change : result.plans.front().settings)
    set_at_pointer(document, change.pointer, change.value);
  return to_json(document.root) + "\n";
}

void leave_files(const SearchArguments& arguments, const Document& document, const SearchResult& result,
                 int shown) {
  if (!arguments.plot.empty()) write_file(arguments.plot, to_svg(result));
  if (!arguments.write.empty()) write_file(arguments.write, winner(document, result));
  if (arguments.out.empty()) return;
  std::filesystem::create_directories(arguments.out);
  const std::filesystem::path out(arguments.out);
  write_file((out / "report.json").string(), to_json(result));
  write_file((out / "report.txt").string(), to_text(result, shown));
  write_file((out / "search.svg").string(), to_svg(result));
  write_file((out / "best.json").string(), winner(document, result));
}

SearchResult searched(const SearchRequest& request, const Document& document, const SpaceFile& space) {
  const auto started = std::chrono::steady_clock::now();
  SearchResult result = search_training(document, space, request);
  RunFacts use;
  add_process_use(use, started);
  result.wall_s = use.wall_s, result.cpu_s = use.cpu_s, result.max_rss_bytes = use.max_rss_bytes;
  return result;
}

int run(const SearchArguments& arguments, const ChosenExecutor& rough, const ChosenExecutor& fine) {
  *fine.data = *rough.data = arguments.scenario.data;
  const Library library(arguments.scenario.data);
  const Document document = document_of(arguments.scenario);
  require_training(document);
  const SpaceFile space = load_space(arguments.space);
  const Interruption interruption;
  ProgressBar bar;
  SearchRequest request{.goal = arguments.goal,
                        .rough = rough.start,
                        .fine = fine.start,
                        .data = arguments.scenario.data,
                        .library = &library};
  request.top = number(arguments.top, 10, 1, "--top");
  request.refine = number(arguments.refine, 100, 0, "--refine");
  request.time_limit_s = arguments.time_limit;
  request.prune = !arguments.exhaustive;
  request.stopped = [&] { return interruption.came(); };
  request.progress = [&](double share) { bar.show(share); };
  const SearchResult result = searched(request, document, space);
  const int shown = std::max(request.top, 1);
  print(arguments.json ? to_json(result) : to_text(result, shown));
  if (result.plans.empty()) throw run_error(result.scenario + ": no plan was found before " + result.ended);
  leave_files(arguments, document, result, shown);
  return 0;
}

}  // namespace

Command search_command(const ChosenExecutor& rough, const ChosenExecutor& fine) {
  const auto arguments = std::make_shared<SearchArguments>();
  const CommandOptions own{
      choice("--goal", arguments->goal, search_goals(),
             "what is best: step-time (default), tokens-per-dollar, tokens-per-joule"),
      {"--space", &arguments->space,
       "file of what to vary (kind search-space); default: every degree and switch"},
      {"--top", &arguments->top,
       "plans whose order is certain by alpha-beta, and that are printed (default 10)"},
      {"--refine", &arguments->refine, "of the best, at most so many are run again at fluid (default 100)"},
      {"--time-limit", &arguments->time_limit,
       "seconds after which the best so far is the answer (default: none)"},
      {"--exhaustive", &arguments->exhaustive, "run every legal plan, without bounds"},
      {"--out", &arguments->out, "directory for report.json, report.txt, search.svg, best.json"},
      {"--plot", &arguments->plot, "SVG file: memory against the goal's figure, with the Pareto front"},
      {"--write", &arguments->write, "file for the best plan as a scenario that runs"},
      {"--json", &arguments->json, "print the result as one JSON object"}};
  return {"search", "best parallel plans of a scenario, ranked, with reasons",
          joined({scenario_options(arguments->scenario), own}),
          [arguments, rough, fine] { return run(*arguments, rough, fine); }};
}

}  // namespace moebius
