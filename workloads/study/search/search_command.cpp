#include "workloads/study/search/search_command.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/new_file.h"
#include "workloads/checkpoint/interruption.h"
#include "workloads/command_line/scenario_commands.h"
#include "workloads/progress_bar.h"
#include "workloads/report/run_directory.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/scenario/named_files.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/traffic_keys.h"
#include "workloads/study/search/document_changes.h"
#include "workloads/study/search/serving_search.h"
#include "workloads/study/search/space_check.h"
#include "workloads/study/search/training_search.h"

namespace moebius {
namespace {

// Queues decide what a service does, and bounds that do not know them rule out few plans: those of long
// prompts would run for hours.
constexpr double kServiceLimit = 300;  // seconds

struct SearchArguments {
  ScenarioArguments scenario;
  std::optional<SearchGoal> goal;
  std::string space, out, plot, write;
  std::optional<std::int64_t> top, refine, requests;
  std::optional<double> time_limit, attainment;
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
  apply(arguments.changes, document);
  keep_path_alone(document);
  return document;
}

enum class SearchKind : std::uint8_t { kTraining, kServing };

SearchKind kind_of(const Document& document) {
  const Value* kind = document.root.kind == Value::Kind::kObject ? document.root.find("kind") : nullptr;
  if (kind != nullptr && kind->text == "serving") return SearchKind::kServing;
  if (kind != nullptr && kind->text != "training")
    place_at(document, "/kind")
        .fail(fmt::format(
            "a search is for \"training\" or \"serving\", found {}: `moebius sweep` varies any scenario",
            kind->excerpt()));
  return SearchKind::kTraining;
}

SearchGoal goal_of(const SearchArguments& arguments, const SearchSubject& subject, const char* kind) {
  const SearchGoal goal = arguments.goal.value_or(subject.goals.front());
  std::vector<std::string> names;
  for (const SearchGoal of : subject.goals) names.push_back(name_of(of));
  if (std::find(subject.goals.begin(), subject.goals.end(), goal) == subject.goals.end())
    throw input_error(fmt::format("--goal: expected one of {} for {}, found {}", fmt::join(names, ", "), kind,
                                  name_of(goal)));
  return goal;
}

// Options that only a service has.
void set_traffic(const SearchArguments& arguments, SearchKind kind, SearchRequest& request) {
  const bool serving = kind == SearchKind::kServing;
  if (arguments.requests && !serving) throw input_error("--requests counts only for serving");
  const double attainment = arguments.attainment.value_or(0);
  if (attainment != 0 && !serving) throw input_error("--attainment counts only for serving");
  if (!(attainment >= 0 && attainment <= 1))
    throw input_error(
        fmt::format("--attainment: expected a share of requests from 0 to 1, found {}", attainment));
  if (attainment > 0 && request.goal != SearchGoal::kGoodput)
    throw input_error(
        fmt::format("--attainment counts only with --goal goodput, found {}", name_of(request.goal)));
  if (arguments.requests && *arguments.requests < 1)
    throw input_error(fmt::format("--requests: expected at least 1, found {}", *arguments.requests));
  request.requests = arguments.requests.value_or(request.requests);
  request.attainment = attainment;
}

double time_limit(const SearchArguments& arguments, SearchKind kind) {
  const double limit = arguments.time_limit.value_or(kind == SearchKind::kServing ? kServiceLimit : 0);
  if (!(limit >= 0)) throw input_error(fmt::format("--time-limit: expected seconds, found {}", limit));
  return limit;
}

// The best plan as a scenario that stands in this directory.
std::string winner(const Document& document, const SearchResult& result,
                   const std::filesystem::path& directory) {
  Document best = changed(written_into(document, directory.string()), result.plans.front().settings);
  forget_expected(best);
  return to_json(best.root) + "\n";
}

void leave_files(const SearchArguments& arguments, const Document& document, const SearchResult& result,
                 int shown) {
  if (!arguments.plot.empty()) write_file(arguments.plot, to_svg(result));
  if (!arguments.write.empty())
    write_file(arguments.write,
               winner(document, result, std::filesystem::path(arguments.write).parent_path()));
  if (arguments.out.empty()) return;
  const DirectoryLock lock(arguments.out);
  const std::filesystem::path out(arguments.out);
  write_file((out / "report.json").string(), to_json(result));
  write_file((out / "report.txt").string(), to_text(result, shown));
  write_file((out / "search.svg").string(), to_svg(result));
  write_file((out / "best.json").string(), winner(document, result, out));
}

SearchResult searched(const SearchRequest& request, SearchKind kind, const Document& document,
                      const SpaceFile& space) {
  const auto started = std::chrono::steady_clock::now();
  SearchResult result = kind == SearchKind::kServing ? search_serving(document, space, request)
                                                     : search_training(document, space, request);
  RunFacts use;
  add_process_use(use, started);
  result.wall_s = use.wall_s, result.cpu_s = use.cpu_s, result.max_rss_bytes = use.max_rss_bytes;
  return result;
}

int run(const SearchArguments& arguments, const ChosenExecutor& rough, const ChosenExecutor& fine,
        const KnowTransfers& transfers) {
  *fine.data = *rough.data = arguments.scenario.data;
  const Library library(arguments.scenario.data);
  const Document document = document_of(arguments.scenario);
  const SearchKind kind = kind_of(document);
  const bool serving = kind == SearchKind::kServing;
  const SearchSubject& subject = serving ? serving_subject() : training_subject();
  const SpaceFile space = load_space(arguments.space);
  require_known_keys(space, document, library);
  const Interruption interruption;
  ProgressBar bar;
  SearchRequest request{.goal = goal_of(arguments, subject, serving ? "serving" : "training"),
                        .rough = rough.start,
                        .fine = fine.start,
                        .transfers = transfers,
                        .data = arguments.scenario.data,
                        .library = &library};
  request.top = number(arguments.top, 10, 1, "--top");
  request.refine = number(arguments.refine, subject.refine, 0, "--refine");
  set_traffic(arguments, kind, request);
  request.time_limit_s = time_limit(arguments, kind);
  request.prune = !arguments.exhaustive;
  require_apart("--plot", arguments.plot, arguments.write);
  for (const std::string& read : {arguments.scenario.file, arguments.space}) {
    require_apart("--plot", arguments.plot, read);
    require_apart("--write", arguments.write, read);
  }
  for (const std::string& path : {arguments.plot, arguments.write})
    if (!path.empty()) require_writable(path);  // before the work
  const auto made =
      require_directory(arguments.out, {"report.json", "report.txt", "search.svg", "best.json"});
  request.stopped = [&] { return interruption.came(); };
  request.progress = [&](double share, const std::string& doing) { bar.show(share, doing); };
  const SearchResult result = searched(request, kind, document, space);
  const int shown = std::max(request.top, 1);
  print(arguments.json ? to_json(result) : to_text(result, shown));
  if (result.plans.empty()) throw run_error(result.scenario + ": no plan was found before " + result.ended);
  leave_files(arguments, document, result, shown);
  constexpr int kInterrupted = 130;  // as a shell says it
  return interruption.came() ? kInterrupted : 0;
}

}  // namespace

Command search_command(const ChosenExecutor& rough, const ChosenExecutor& fine,
                       const KnowTransfers& transfers) {
  const auto arguments = std::make_shared<SearchArguments>();
  const CommandOptions own{
      choice("--goal", arguments->goal, search_goals(),
             "what is best: step-time (default of training), goodput (default of serving), throughput, "
             "tokens-per-dollar, tokens-per-joule"),
      {"--space", &arguments->space,
       "file of what to vary (kind search-space); default: every degree and switch"},
      {"--top", &arguments->top,
       "plans whose order is certain by alpha-beta, and that are printed (default 10)"},
      {"--refine", &arguments->refine,
       "of the best, at most so many are run again at fluid (default 100; of serving, all requests, 10)"},
      {"--time-limit", &arguments->time_limit,
       "seconds after which the best so far is the answer, 0 for none (default: none; of serving 300)"},
      {"--requests", &arguments->requests,
       "serving: of the traffic, so many are served in runs by alpha-beta (default 2000)"},
      {"--attainment", &arguments->attainment,
       "serving: the best is who keeps this share of promises at the highest rate of requests, 0.99 for "
       "instance"},
      {"--exhaustive", &arguments->exhaustive, "run every legal plan, without bounds"},
      {"--out", &arguments->out, "directory for report.json, report.txt, search.svg, best.json"},
      {"--plot", &arguments->plot,
       "SVG file: memory (serving: time per token) against the goal's figure, with the Pareto front"},
      {"--write", &arguments->write, "file for the best plan as a scenario that runs"},
      {"--json", &arguments->json, "print the result as one JSON object"}};
  return {"search", "best parallel plans of a scenario, ranked, with reasons",
          joined({scenario_options(arguments->scenario), own}),
          [=] { return run(*arguments, rough, fine, transfers); }};
}

}  // namespace moebius
