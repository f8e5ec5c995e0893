// The composition root: it knows all rooms, reads the command line and puts the parts together. Each
// subcommand is a list of steps.
#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/error.h"
#include "real/host_executor.h"
#include "sim/sim_executor.h"
#include "workloads/calibration/calibrate.h"
#include "workloads/cost/cost_source.h"
#include "workloads/explain.h"
#include "workloads/group_ledger.h"
#include "workloads/job.h"
#include "workloads/cost/kernel_curve.h"
#include "workloads/listing.h"
#include "workloads/observed_workload.h"
#include "workloads/progress_bar.h"
#include "workloads/report/report.h"
#include "workloads/report/run_directory.h"
#include "workloads/schedule/compare.h"
#include "workloads/schedule_dump.h"
#include "workloads/scenario/schema.h"
#include "workloads/report/summary.h"

namespace moebius {
namespace {

constexpr const char* kVersion = "0.1.0";

enum class ExecutorKind { kSim, kHost };
const std::vector<std::pair<std::string, ExecutorKind>> kExecutors{{"sim", ExecutorKind::kSim},
                                                                   {"host", ExecutorKind::kHost}};
const std::vector<std::pair<std::string, NetworkDetail>> kDetails{{"alpha-beta", NetworkDetail::kAlphaBeta},
                                                                  {"fluid", NetworkDetail::kFluid},
                                                                  {"native", NetworkDetail::kNative}};
const std::vector<std::pair<std::string, Driver>> kDrivers{{"simgrid", Driver::kSimGrid},
                                                           {"plain", Driver::kPlain}};

// What the command line says; each subcommand uses its part.
struct Arguments {
  std::string scenario, data, out, dump, name, from, run_a, run_b;
  Changes changes;
  ExecutorKind executor = ExecutorKind::kSim;
  NetworkDetail detail = NetworkDetail::kFluid;
  Driver driver = has_simgrid() ? Driver::kSimGrid : Driver::kPlain;
  KernelRequest kernel;
  bool explain = false, json = false;
};

// An executor with what it needs to live, and what is said of it in the report.
struct Engine {
  std::vector<std::unique_ptr<CostSource>> costs;  // by pool
  std::unique_ptr<Executor> executor;
  HostExecutor<float>* host = nullptr;  // when that is what runs
  RunFacts facts;
};

struct Outcome {
  Report report;
  Timeline timeline;
};

template <class T>
std::string name_of(const std::vector<std::pair<std::string, T>>& table, T value) {
  for (const auto& [name, row] : table) {
    if (row == value) return name;
  }
  return "";
}

Engine start_simulator(const Job& job, const Arguments& arguments, const Layout& layout, Recorder& recorder) {
  Engine engine;
  std::vector<const CostSource*> costs;
  for (const Pool& pool : job.scenario.cluster->pools) {
    engine.costs.push_back(make_cost_source(pool.accelerator, arguments.data));
    costs.push_back(engine.costs.back().get());
    engine.facts.provenance.emplace_back("cost of " + pool.accelerator.id, costs.back()->description());
  }
  engine.executor = make_sim_executor(*job.scenario.cluster, layout, costs, recorder,
                                      {.detail = arguments.detail, .driver = arguments.driver});
  engine.facts.executor = "sim";
  engine.facts.detail = name_of(kDetails, arguments.detail);
  engine.facts.provenance.emplace_back("driver", name_of(kDrivers, arguments.driver));
  engine.facts.provenance.emplace_back("simulator", simulator_version());
  return engine;
}

Engine start_host(const Job& job, const Layout& layout, Recorder& recorder) {
  require_host(job);
  Engine engine;
  HostOptions options;
  options.seed = job.scenario.seed;
  std::unique_ptr<HostExecutor<float>> host = make_host_executor(layout, recorder, options);
  engine.host = host.get();
  engine.executor = std::move(host);
  engine.facts.executor = "host";
  engine.facts.detail = "threads";
  engine.facts.on_cluster = false;
  return engine;
}

Engine start(const Job& job, const Arguments& arguments, const Layout& layout, Recorder& recorder) {
  switch (arguments.executor) {
    case ExecutorKind::kSim:
      return start_simulator(job, arguments, layout, recorder);
    case ExecutorKind::kHost:
      return start_host(job, layout, recorder);
  }
  return {};
}

void add_losses(Engine& engine) {
  for (int step = 0; step < engine.host->num_steps(); ++step)
    engine.facts.losses.push_back(engine.host->loss(step));
}

void add_process_use(RunFacts& facts, std::chrono::steady_clock::time_point started) {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  facts.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  facts.cpu_s = seconds(use.ru_utime) + seconds(use.ru_stime);
  facts.max_rss_bytes = 1024.0 * static_cast<double>(use.ru_maxrss);  // Linux counts in KiB
}

// Who listens: `observer` hears of every submission, `inspect` sees the executor before it goes.
struct Hooks {
  ObservedWorkload::Observer observer = [](const Submission&) {};
  std::function<void(Engine&)> inspect = [](Engine&) {};
};

// Runs the job to its end.
Outcome perform(Job& job, const Arguments& arguments, const Hooks& hooks) {
  const auto started = std::chrono::steady_clock::now();
  ObservedWorkload workload(job.workload(), hooks.observer);
  Recorder recorder(workload.layout(), job.scenario.timeline);
  if (job.training) job.training->record_memory(recorder);
  Engine engine = start(job, arguments, workload.layout(), recorder);
  Time end;
  {
    ProgressBar bar;
    end = execute(workload, *engine.executor, recorder, [&](double share) { bar.show(share); });
  }
  if (engine.host != nullptr && job.training) add_losses(engine);
  hooks.inspect(engine);
  Outcome outcome;
  outcome.report = {&job.scenario, std::move(engine.facts), recorder.finish(end), job.memory};
  RunFacts& facts = outcome.report.facts;
  facts.provenance.emplace_back("schedule", fmt::format("{:016x}", recorder.schedule_hash()));
  facts.provenance.emplace_back("moebius", kVersion);
  facts.dropped_spans = recorder.dropped_spans();
  outcome.timeline = std::move(recorder.timeline());
  const std::vector<std::pair<std::string, std::string>> run{{"moebius", kVersion},
                                                             {"scenario", job.scenario.name},
                                                             {"executor", facts.executor},
                                                             {"detail", facts.detail},
                                                             {"seed", std::to_string(job.scenario.seed)}};
  outcome.timeline.facts.insert(outcome.timeline.facts.begin(), run.begin(), run.end());
  add_process_use(facts, started);
  return outcome;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int run_command(const Arguments& arguments) {
  const Library library(arguments.data);
  Job job = read_job(arguments.scenario, arguments.changes, library);
  require_fit(job);
  // From here the schedule is decided and the devices can hold it.
  Hooks hooks;
  std::optional<ScheduleDump> dump;
  if (!arguments.dump.empty()) {
    dump.emplace(arguments.dump);
    hooks.observer = [&](const Submission& submission) { dump->write(submission); };
  }
  const Outcome outcome = perform(job, arguments, hooks);
  if (dump) dump->close();
  const std::string json = report_json(outcome.report), text = report_text(outcome.report);
  if (!arguments.out.empty()) write_run(arguments.out, {json, text}, outcome.timeline);
  print(arguments.json ? json : text);
  if (arguments.explain) fmt::print(arguments.json ? stderr : stdout, "\n{}", explain(outcome.timeline));
  return 0;
}

int check_command(const Arguments& arguments) {
  const Library library(arguments.data);
  const Job job = read_job(arguments.scenario, arguments.changes, library);
  print(settings_text(job.scenario));
  if (job.training) fmt::print("\n{}", job.training->describe());
  if (job.memory) fmt::print("\n{}", memory_text(*job.memory));
  require_fit(job);
  return 0;
}

int crosscheck_command(const Arguments& arguments) {
  const Library library(arguments.data);
  Arguments simulate = arguments, execute = arguments;
  simulate.executor = ExecutorKind::kSim;
  execute.executor = ExecutorKind::kHost;
  execute.changes.unfold = simulate.changes.unfold = true;  // numbers need every rank
  Job simulated = read_job(arguments.scenario, simulate.changes, library);
  Job executed = read_job(arguments.scenario, execute.changes, library);
  require_fit(simulated);
  // From here both sides hold the same schedule.
  GroupLedger ledger(executed.workload().layout());
  const Outcome a = perform(simulated, simulate, {});
  const Outcome b = perform(executed, execute,
                            {.observer = [&](const Submission& submission) { ledger.scheduled(submission); },
                             .inspect =
                                 [&](Engine& engine) {
                                   for (const Transfer& t : engine.host->transfers())
                                     ledger.moved(t.sequence, t.op, t.rank, t.sent_bytes);
                                 }});
  const RunDirectory directory(arguments.out);
  write_run(directory.path("simulated"), {report_json(a.report), report_text(a.report)}, a.timeline);
  write_run(directory.path("executed"), {report_json(b.report), report_text(b.report)}, b.timeline);
  const Comparison comparison = compare(MappedTimeline(timeline_path(directory.path("simulated"))),
                                        MappedTimeline(timeline_path(directory.path("executed"))));
  const std::vector<GroupBytes> groups = ledger.rows();
  const bool bytes =
      std::all_of(groups.begin(), groups.end(), [](const GroupBytes& row) { return row.agree(); });
  print(to_text(comparison, "simulated", "executed on the host"));
  fmt::print("\n{}", to_text(groups));
  const bool same = comparison.same_structure() && bytes;
  fmt::print("\n{}: ops, order and bytes {}; the host's times are shown, not judged\n",
             simulated.scenario.name, same ? "agree" : "differ");
  return same ? 0 : 1;
}

int compare_command(const Arguments& arguments) {
  const MappedTimeline a(timeline_path(arguments.run_a)), b(timeline_path(arguments.run_b));
  print(to_text(compare(a, b), arguments.run_a, arguments.run_b));
  return 0;
}

int list_command(const Arguments& arguments) {
  const Library library(arguments.data);
  print(list_text(arguments.name, {library.hardware, library.models}));
  return 0;
}

int show_command(const Arguments& arguments) {
  const Library library(arguments.data);
  if (!arguments.kernel.kind.empty()) {
    const Accelerator chip = library.hardware.accelerator(arguments.name);
    print(to_text(kernel_curve(arguments.kernel, chip, *make_cost_source(chip, arguments.data))));
    return 0;
  }
  require_no_kernel(arguments.kernel);
  print(show_text(arguments.name, {library.hardware, library.models}));
  return 0;
}

int calibrate_command(const Arguments& arguments) {
  const Library library(arguments.data);
  for (const Profile& profile : calibrate(arguments.from, library.hardware, arguments.name, arguments.out))
    fmt::print("{} tables of {}: {}\n", profile.tables.size(), profile.accelerator, arguments.out);
  return 0;
}

int schema_command(const Arguments&) {
  print(scenario_schema());
  return 0;
}

// ---- the command line ----

void add_scenario_options(CLI::App& command, Arguments& arguments) {
  command.add_option("SCENARIO", arguments.scenario, "scenario file")->required();
  command
      .add_option("--set", arguments.changes.sets,
                  "/json/pointer=value: changes the scenario; may be given again")
      ->take_all();
  command.add_option("--seed", arguments.changes.seed, "replaces the scenario's seed");
}

void add_data_option(CLI::App& command, Arguments& arguments) {
  command.add_option("--data", arguments.data,
                     "directory with catalogs and profiles that extend or override the built-in ones");
}

void add_simulator_options(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--detail", arguments.detail,
                  "how the network is simulated: alpha-beta, fluid (default), native")
      ->transform(CLI::CheckedTransformer(kDetails).description(""));
  command
      .add_option("--driver", arguments.driver,
                  "who drives the simulator: simgrid (default where built in), plain")
      ->transform(CLI::CheckedTransformer(kDrivers).description(""));
}

void add_kernel_options(CLI::App& command, KernelRequest& kernel) {
  command.add_option("--kernel", kernel.kind, "an accelerator's cost of a kernel: " + kernel_kind_names());
  for (const KernelOption& option : kernel_options())
    command.add_option(fmt::format("--{}", option.name), kernel.*option.value, std::string(option.help));
  command.add_option("--dtype", kernel.dtype, "of the operands: bf16, fp8, ...");
}

void add_commands(CLI::App& app, Arguments& arguments, std::function<int(const Arguments&)>& chosen) {
  const auto add = [&](const char* name, const char* help, int (*body)(const Arguments&)) {
    CLI::App* command = app.add_subcommand(name, help);
    command->callback([&chosen, body] { chosen = body; });
    return command;
  };
  CLI::App* run = add("run", "simulate or execute a scenario and report", run_command);
  add_scenario_options(*run, arguments);
  add_data_option(*run, arguments);
  add_simulator_options(*run, arguments);
  run->add_option("--executor", arguments.executor,
                  "sim (default): predict; host: execute on this CPU, ranks as threads")
      ->transform(CLI::CheckedTransformer(kExecutors).description(""));
  run->add_option("--out", arguments.out, "directory for report.json, report.txt, timeline.mtl");
  run->add_option("--dump", arguments.dump, "file for the schedule as text");
  run->add_flag("--explain", arguments.explain,
                "also every op of one layer: shape, time, where the time is known from");
  run->add_flag("--json", arguments.json, "print the report as one JSON object");
  CLI::App* check =
      add("check", "validate a scenario; print every setting in use and the memory it needs", check_command);
  add_scenario_options(*check, arguments);
  add_data_option(*check, arguments);
  CLI::App* crosscheck =
      add("crosscheck", "simulate and execute the same schedule; compare ops, order and bytes",
          crosscheck_command);
  add_scenario_options(*crosscheck, arguments);
  add_data_option(*crosscheck, arguments);
  add_simulator_options(*crosscheck, arguments);
  crosscheck->add_option("--out", arguments.out, "directory for the runs simulated/ and executed/");
  CLI::App* compare = add("compare", "join two runs of one schedule op by op", compare_command);
  compare->add_option("RUN_A", arguments.run_a, "a run's directory or timeline")->required();
  compare->add_option("RUN_B", arguments.run_b, "another one")->required();
  CLI::App* list = add("list", "list what the catalogs hold", list_command);
  list->add_option("WHAT", arguments.name, fmt::format("{}", fmt::join(listable(), ", ")))->required();
  add_data_option(*list, arguments);
  CLI::App* show = add("show", "show one accelerator, node, fabric, storage device or model with its sources",
                       show_command);
  show->add_option("NAME", arguments.name, "id or alias")->required();
  add_kernel_options(*show, arguments.kernel);
  add_data_option(*show, arguments);
  CLI::App* calibrate =
      add("calibrate", "make a kernel profile from tables of published measurements", calibrate_command);
  calibrate->add_option("--from", arguments.from, "directory with the tables (CSV)")->required();
  calibrate->add_option("--accelerator", arguments.name, "whose rows: id, alias or all")->required();
  calibrate->add_option("--out", arguments.out, "the profile to write; of all, their directory")->required();
  add_data_option(*calibrate, arguments);
  add("schema", "print the JSON Schema of scenario files", schema_command);
}

int fail(const Error& error) {
  fmt::print(stderr, "moebius: {}\n", error.what());
  return error.kind() == Error::Kind::kInput ? 2 : 1;
}

int start_command(int argc, char** argv) {
  CLI::App app(
      "Moebius simulates Mixture-of-Experts training on any cluster and executes the same schedules.",
      "moebius");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  Arguments arguments;
  std::function<int(const Arguments&)> chosen;
  add_commands(app, arguments, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return chosen(arguments);
  } catch (const Error& error) {
    return fail(error);
  }
}

}  // namespace
}  // namespace moebius

int main(int argc, char** argv) {
  return moebius::start_command(argc, argv);
}
