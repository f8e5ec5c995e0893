#include "workloads/study/sweep_command.h"

#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/report/number_text.h"
#include "workloads/report/run_directory.h"
#include "workloads/study/check_study.h"
#include "workloads/study/study_points.h"
#include "workloads/study/study_table.h"
#include "workloads/validation/validation.h"

namespace moebius {

namespace {

constexpr std::size_t kRowsShown = 40;
constexpr std::int64_t kMostWorkers = 1024;

struct SweepArguments {
  std::string study, results, csv, plot;
  std::optional<std::int64_t> workers;
  bool table = false, json = false, retry = false;

  // Beside the study, unless said otherwise.
  std::string results_path() const {
    return results.empty() ? std::filesystem::path(study).replace_extension(".sqlite").string() : results;
  }
  int worker_count() const {
    if (!workers) return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (*workers < 1 || *workers > kMostWorkers)
      throw input_error(fmt::format("--workers: expected 1 to {}, found {}", kMostWorkers, *workers));
    return static_cast<int>(*workers);
  }
};

// In one line also where rows are too many to be read.
std::string failed_text(const StudyTable& table) {
  if (table.failed == 0) return "";
  return fmt::format("{} of {} points failed: --retry carries them out again\n", grouped(table.failed),
                     grouped(table.points));
}

std::string course_text(const SweepArguments& arguments, const SweepCourse& course, const StudyTable& table) {
  return failed_text(table) +
         fmt::format("{} points carried out now{}; results: {}\n", grouped(course.carried),
                     course.others > 0 ? fmt::format(", with {} processes elsewhere", course.others) : "",
                     arguments.results_path());
}

int run_first(const SweepArguments& arguments, const SweepRequest& request, const Library& library) {
  require_valid_point(request.study, library);  // before anything is written
  for (const std::string& other : {arguments.study, request.study.base.file, arguments.results_path()}) {
    require_apart("--csv", arguments.csv, other);
    require_apart("--plot", arguments.plot, other);
  }
  require_apart("--plot", arguments.plot, arguments.csv);
  for (const std::string& path : {arguments.csv, arguments.plot})
    if (!path.empty()) require_writable(path);
  ResultsFile results(arguments.results_path());
  const SweepCourse course = sweep(request, results);
  const StudyTable table = table_of(request.study, results, course.study);
  if (!arguments.csv.empty()) write_file(arguments.csv, to_csv(request.study, results, course.study));
  if (!arguments.plot.empty()) write_file(arguments.plot, to_svg(request.study, table));
  if (arguments.json) {
    print(to_json(request.study, table));
    fmt::print(stderr, "{}", failed_text(table));
  } else {
    print(to_text(request.study, table, arguments.table ? table.rows.size() : kRowsShown) +
          course_text(arguments, course, table));
  }
  return table.done > 0 ? 0 : 1;
}

int run(const SweepArguments& arguments, const ChosenExecutor& executor, const SweepCompanions& companions) {
  const Study study = load_study(arguments.study);
  const Library library(*executor.data);
  const auto point = [&](const Document& scenario) {
    return quiet_report(scenario, library, executor.start);
  };
  const SweepRequest request{.study = study,
                             .means = executor.means(),
                             .data = *executor.data,
                             .data_mark = data_mark(*executor.data),
                             .run = point,
                             .workers = arguments.worker_count(),
                             .retry = arguments.retry,
                             .companions = companions};
  if (companions.self == 0) return run_first(arguments, request, library);
  work_for_first(request);
  return 0;
}

}  // namespace

Command sweep_command(const ChosenExecutor& executor, const std::function<SweepCompanions()>& companions) {
  const auto arguments = std::make_shared<SweepArguments>();
  const CommandOptions own{
      {.name = "STUDY", .target = &arguments->study, .help = "study file", .required = true},
      {"--db", &arguments->results,
       "SQLite file of the results (default: beside the study, by its name with .sqlite)"},
      {"--workers", &arguments->workers, "processes on this machine (default: one a core)"},
      {"--retry", &arguments->retry, "also points that failed before"},
      {"--table", &arguments->table, "print every row, not the first 40"},
      {"--csv", &arguments->csv, "file for every point in a line"},
      {"--plot", &arguments->plot, "SVG file: the columns over the first varied value"},
      {"--json", &arguments->json, "print the table as one JSON object"}};
  return {"sweep", "carry out a study: a grid of what-ifs into an SQLite file; goes on where it was ended",
          joined({own, executor.options, {data_option(*executor.data)}}),
          [arguments, executor, companions] { return run(*arguments, executor, companions()); }};
}

}  // namespace moebius
