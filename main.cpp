// The composition root: it knows all rooms, reads the command line and puts the parts together. Commands that
// need no executor stand in their rooms (workloads/command_line/); here are those that choose one.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#ifdef MOEBIUS_MIMALLOC
#include <sys/mman.h>
#include "workloads/command_line/throwing_new.h"
#endif

#include "hw/error.h"
#include "hw/interrupted.h"
#include "real/alignment_command.h"
#include "real/bench/measuring_device.h"
#include "real/calibration/host_device.h"
#include "real/calibration/host_machine.h"
#include "real/cuda/cuda_bench.h"
#include "real/cuda/cuda_run.h"
#include "real/cuda/cuda_under_test.h"
#include "real/host/host_run.h"
#include "real/processes/launched_companions.h"
#include "real/processes/run_together.h"
#include "sim/emulate_run.h"
#include "sim/sim_run.h"
#include "sim/simulator_options.h"
#include "sim/traffic/idle_transfers.h"
#include "viz/command/export_command.h"
#include "viz/command/import_command.h"
#include "viz/command/report_command.h"
#include "viz/command/view_command.h"
#include "workloads/advice/advice.h"
#include "workloads/command_line/calibrate_command.h"
#include "workloads/command_line/catalog_commands.h"
#include "workloads/command_line/command.h"
#include "workloads/command_line/eplb_command.h"
#include "workloads/command_line/file_commands.h"
#include "workloads/command_line/manual.h"
#include "workloads/command_line/outcome.h"
#include "workloads/command_line/scenario_commands.h"
#include "workloads/cost/cost_source.h"
#include "workloads/crosscheck/crosscheck.h"
#include "workloads/perform/explain.h"
#include "workloads/perform/perform.h"
#include "workloads/perform/schedule_dump.h"
#include "workloads/report/expert_map.h"
#include "workloads/report/queue_picture.h"
#include "workloads/report/report.h"
#include "workloads/report/report_figures.h"
#include "workloads/report/run_directory.h"
#include "workloads/service/carried_job.h"
#include "workloads/study/mixed/mixed_commands.h"
#include "workloads/study/placement/place_command.h"
#include "workloads/study/search/search_command.h"
#include "workloads/study/sweep_command.h"
#include "workloads/validation/validate_command.h"

namespace moebius {
namespace {

enum class ExecutorKind { kSim, kHost, kCuda, kEmulate };
const std::vector<std::pair<std::string, ExecutorKind>> kExecutors{{"sim", ExecutorKind::kSim},
                                                                   {"host", ExecutorKind::kHost},
                                                                   {"cuda", ExecutorKind::kCuda},
                                                                   {"emulate", ExecutorKind::kEmulate}};
const std::vector<std::pair<std::string, ExecutorKind>> kReal(kExecutors.begin() + 1, kExecutors.end() - 1);

// What run and crosscheck are told; each uses its part.
struct RunArguments {
  ScenarioArguments scenario;
  std::string out, dump, device, profile;
  ExecutorKind executor = ExecutorKind::kSim;
  std::optional<NetworkDetail> detail;  // none given: fluid
  std::optional<Driver> driver;         // none given: plain, SimGrid of native
  std::function<std::shared_ptr<const CostSource>(const Accelerator&)> costs;  // of the simulator's chips
  RealRun real;
  bool explain = false, json = false;

  bool carries_out() const { return executor == ExecutorKind::kHost || executor == ExecutorKind::kCuda; }
  SimOptions simulation() const {
    const NetworkDetail level = detail.value_or(NetworkDetail::kFluid);
    return {level, driver.value_or(level == NetworkDetail::kNative ? Driver::kSimGrid : Driver::kPlain)};
  }
};

EmulateRun emulation_of(const RunArguments& arguments) {
  return {.simulation = {arguments.scenario.data, arguments.simulation()},
          .device = [&] { return open_measuring_device(arguments.device, make_cuda_bench); },
          .journal = arguments.out.empty() ? "" : arguments.out + "/ops.jsonl"};
}

// Who carries out the jobs of this command line.
StartExecutor executor_of(ExecutorKind kind, const RunArguments& arguments) {
  switch (kind) {
    case ExecutorKind::kSim:
      return [&arguments](const Job& job, const Layout& layout, Recorder& recorder) {
        return start_simulator(job, layout, recorder,
                               {arguments.scenario.data, arguments.simulation(), arguments.costs});
      };
    case ExecutorKind::kHost:
      return [&arguments](const Job& job, const Layout& layout, Recorder& recorder) {
        return start_host(job, layout, recorder, arguments.real);
      };
    case ExecutorKind::kCuda:
      return [&arguments](const Job& job, const Layout& layout, Recorder& recorder) {
        return start_cuda(job, layout, recorder, arguments.real);
      };
    case ExecutorKind::kEmulate:
      return [&arguments](const Job& job, const Layout& layout, Recorder& recorder) {
        return start_emulation(job, layout, recorder, emulation_of(arguments));
      };
  }
  return {};
}

Advice advice_on(const Outcome& outcome, RunArguments arguments) {
  if (arguments.simulation().detail == NetworkDetail::kNative) return advise(outcome, {}, {});
  arguments.driver = Driver::kPlain;  // several runs side by side: SimGrid has one engine in a process
  const Library library(arguments.scenario.data);
  const auto read = [&](const std::vector<std::string>& sets) {
    Changes changes = arguments.scenario.changes;
    changes.sets.insert(changes.sets.end(), sets.begin(), sets.end());
    return read_job(arguments.scenario.file, changes, library);
  };
  return advise(outcome, read, executor_of(ExecutorKind::kSim, arguments));
}

// Options that go with other executors: what they say would not be done.
void require_meant(const RunArguments& arguments) {
  if (arguments.executor != ExecutorKind::kCuda)
    require_unset(arguments.real.trace_kernels,
                  "--trace-kernels: expected --executor cuda: only a GPU's kernels are traced");
  if (arguments.executor != ExecutorKind::kEmulate)
    require_unset(arguments.device, "--device: expected --executor emulate: nothing else measures on one");
  const std::string network = arguments.detail ? "--detail" : arguments.driver ? "--driver" : "";
  if (arguments.carries_out())
    require_unset(network, network + ": expected --executor sim or emulate: nothing else is simulated");
}

int run_body(const RunArguments& arguments) {
  require_meant(arguments);
  require_apart("--dump", arguments.dump, arguments.scenario.file);
  Job job = arguments.scenario.read();
  if (arguments.carries_out() && job.is_service()) carry_out(job);
  if (arguments.json && lacks_memory(job)) print(unfit_json(job.scenario, *job.memory));
  require_fit(job);
  require_network(job, arguments.simulation(), arguments.detail.has_value(), arguments.driver.has_value());
  if (arguments.explain) keep_ops(job.scenario);
  if (arguments.executor != ExecutorKind::kSim || arguments.explain || !arguments.dump.empty())
    require_schedule(job);
  if (!arguments.carries_out()) require_nothing_computed(job, arguments.real);
  const auto made = require_run_directory(arguments.out);  // before the work
  // From here the schedule is decided and the devices can hold it.
  Hooks hooks{.wants_spans = arguments.explain || !arguments.out.empty()};
  std::optional<ScheduleDump> dump;
  if (!arguments.dump.empty()) {
    dump.emplace(arguments.dump);
    hooks.observer = [&](const Submission& submission) { dump->write(submission); };
  }
  Outcome outcome = perform(job, executor_of(arguments.executor, arguments), hooks);
  if (!speaks(arguments.real.processes)) return 0;  // the first one says how it ended, once it has written
  if (arguments.explain && job.training && arguments.executor == ExecutorKind::kSim)
    outcome.report.advice = advice_on(outcome, arguments);
  const std::string json = report_json(outcome.report), text = report_text(outcome.report);
  print(arguments.json ? json : text);
  if (arguments.explain) fmt::print(arguments.json ? stderr : stdout, "\n{}", explain_run(outcome));
  if (dump) dump->close();
  if (!arguments.out.empty())
    write_run(arguments.out, {json, text, experts_svg(outcome.report), queues_svg(outcome.report)},
              outcome.timeline);
  if (!outcome.interrupted.empty()) throw run_error(outcome.interrupted);
  require_expected_figures(outcome.report);
  return 0;
}

int crosscheck_body(const RunArguments& given) {
  RunArguments arguments = given;
  arguments.real.measured = arguments.real.processes == nullptr;
  arguments.scenario.changes.unfold = true;  // numbers need every rank
  const bool warm = arguments.executor == ExecutorKind::kCuda;
  if (const Job job = arguments.scenario.read(); warm && job.training)
    arguments.scenario.changes.sets.push_back(
        fmt::format("/workload/steps={}", job.scenario.training.steps + 1));
  const auto read = [&] {
    Job job = arguments.scenario.read();
    if (job.is_service()) carry_out(job);
    return job;
  };
  CrosscheckRequest request{read, executor_of(ExecutorKind::kSim, arguments),
                            executor_of(arguments.executor, arguments), arguments.out};
  request.warm = warm;
  const bool on_host = arguments.executor == ExecutorKind::kHost;
  RunArguments live = arguments;
  live.real.measured = false;
  request.live = executor_of(live.executor, live);
  if ((on_host && arguments.real.measured) || !arguments.profile.empty()) {
    const MeasuredMachine machine = arguments.profile.empty()
                                        ? measure_host_machine(request.read())
                                        : read_machine(arguments.profile, request.read());
    arguments.costs = machine.costs;
    request.machine = machine_for(machine, on_host ? "host" : "cuda");
  }
  const Crosscheck result = crosscheck(request);
  print(arguments.json ? to_json(result) : to_text(result));
  return result.same() ? 0 : 1;
}

// In each process that a launcher started; what one leaves behind, the first one writes.
std::function<int()> in_all_processes(std::shared_ptr<RunArguments> given, int (*body)(const RunArguments&)) {
  return [given, body] {
    RunArguments arguments = *given;
    if (arguments.executor != ExecutorKind::kHost) require_one_process();
    return run_together([&](Processes* processes) {
      arguments.real.processes = processes;
      if (!speaks(processes)) arguments.out = arguments.dump = "";
      return body(arguments);
    });
  };
}

Command run_command() {
  const auto arguments = std::make_shared<RunArguments>();
  const CommandOptions own{
      choice("--executor", arguments->executor, kExecutors,
             "sim (default): predict; host: execute on this CPU, ranks as threads; cuda: on this GPU; "
             "emulate: predict, with compute measured on this GPU or CPU"),
      {.name = "--device",
       .target = &arguments->device,
       .help = "who measures for emulate: host, cuda:0 (default, where it is)",
       .values = {"host", "cuda:0"}},
      {"--out", &arguments->out, "directory for report.json, report.txt, timeline.mtl"},
      {"--dump", &arguments->dump, "file for the schedule as text"},
      {"--dump-activations", &arguments->real.dump_activations,
       "file for what each layer puts out in the first microbatch (safetensors)"},
      {"--trace-kernels", &arguments->real.trace_kernels,
       "cuda: file for the kernels and copies of each op, with their times (by CUPTI)"},
      {"--explain", &arguments->explain,
       "also every op of one layer: shape, time, where the time is known from; every collective's "
       "candidates; what would help, tried"},
      {"--json", &arguments->json, "print the report as one JSON object"}};
  return {"run", "simulate or execute a scenario and report",
          joined({scenario_options(arguments->scenario),
                  simulator_options(arguments->detail, arguments->driver), own}),
          in_all_processes(arguments, run_body)};
}

Command crosscheck_command() {
  const auto arguments = std::make_shared<RunArguments>();
  arguments->executor = ExecutorKind::kHost;
  const CommandOptions own{
      choice("--executor", arguments->executor, kReal, "who executes: host (default), cuda"),
      {"--profile", &arguments->profile,
       "what calibrate --device measured: simulates the machine that executes"},
      {"--out", &arguments->out, "directory for simulated/, executed/ and crosscheck.json"},
      {"--json", &arguments->json, "print the result as one JSON object"}};
  return {"crosscheck", "simulate and execute the same schedule; compare ops, order and bytes",
          joined({scenario_options(arguments->scenario),
                  simulator_options(arguments->detail, arguments->driver), own}),
          in_all_processes(arguments, crosscheck_body)};
}

// Of commands that make many runs. The simulator goes by its plain loop: SimGrid has one engine in a process.
ChosenExecutor many_runs(bool by_any) {
  const auto arguments = std::make_shared<RunArguments>();
  arguments->driver = Driver::kPlain;
  const StartExecutor start = [arguments](const Job& job, const Layout& layout, Recorder& recorder) {
    return executor_of(arguments->executor, *arguments)(job, layout, recorder);
  };
  CommandOptions options{detail_option(arguments->detail, Driver::kPlain)};
  if (by_any)
    options.push_back(choice("--executor", arguments->executor, kExecutors,
                             "who carries out each run: sim (default), host, cuda, emulate"));
  const auto means = [arguments] {
    require_unset(arguments->carries_out() && arguments->detail ? "--detail" : "",
                  "--detail: expected --executor sim or emulate: nothing else is simulated");
    return name_of(kExecutors, arguments->executor) + " " +
           name_of(network_details(), arguments->simulation().detail);
  };
  return {start, &arguments->scenario.data, options, means};
}

// The simulator at one detail, whatever the command line says.
ChosenExecutor simulated(NetworkDetail detail) {
  const auto arguments = std::make_shared<RunArguments>();
  arguments->driver = Driver::kPlain;
  arguments->detail = detail;
  const StartExecutor start = [arguments](const Job& job, const Layout& layout, Recorder& recorder) {
    return executor_of(ExecutorKind::kSim, *arguments)(job, layout, recorder);
  };
  return {start, &arguments->scenario.data, {}};
}

DeviceUnderTest open_device(const std::string& device, const Catalog& catalog, const std::string& out) {
  return device == "host" ? host_under_test(out) : cuda_under_test(device_index(device), catalog, out);
}

// In the order of --help.
std::vector<Command> all_commands() {
  return {
      run_command(),
      check_command(),
      crosscheck_command(),
      compare_command(),
      export_command(),
      import_command(),
      report_command(),
      view_command(),
      validate_command(many_runs(false)),
      search_command(simulated(NetworkDetail::kAlphaBeta), simulated(NetworkDetail::kFluid), idle_transfers),
      sweep_command(many_runs(true), launched_companions),
      place_command(many_runs(false)),
      matrix_command(many_runs(false)),
      split_command(many_runs(false)),
      list_command(),
      show_command(),
      calibrate_command(open_device),
      convert_command(),
      align_command(),
      eplb_command(),
      schema_command()};
}

struct AddOption {
  CLI::App& app;
  const CommandOption& option;

  CLI::Option* operator()(std::monostate) const {
    return app.add_option_function<std::string>(
        option.name, [](const std::string&) {}, option.help);
  }
  CLI::Option* operator()(bool* flag) const { return app.add_flag(option.name, *flag, option.help); }
  CLI::Option* operator()(std::vector<std::string>* all) const {
    return app.add_option(option.name, *all, option.help)->take_all();
  }
  template <class T>
  CLI::Option* operator()(T* value) const {
    return app.add_option(option.name, *value, option.help);
  }
};

void add_command(CLI::App& app, const Command& command, std::function<int()>& chosen) {
  CLI::App* added = app.add_subcommand(command.name, command.help);
  added->callback([&] { chosen = command.run; });
  for (const CommandOption& option : command.options) {
    CLI::Option* made = std::visit(AddOption{*added, option}, option.target)->required(option.required);
    if (option.check) made->check(CLI::Validator(option.check, ""));
    if (const OptionCheck own = check_of(option.target)) made->check(CLI::Validator(own, ""));
  }
  for (const CommandOption& option : command.options) {
    CLI::Option* made = added->get_option(option.name);
    for (const std::string& other : option.needs) made->needs(added->get_option(other));
    for (const std::string& other : option.excludes) made->excludes(added->get_option(other));
  }
}

int start_command(int argc, char** argv) {
  CLI::App app("Simulates Mixture-of-Experts on any cluster and executes the same schedules.", "moebius");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  std::vector<Command> commands = all_commands();
  for (const auto last : {help_command, manual_command}) commands.push_back(last(commands));
  std::function<int()> chosen;
  for (const Command& command : commands) add_command(app, command, chosen);
  try {
    app.parse(last_word_first(argc, argv));
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> words(argv + std::min(1, argc), argv + argc);
    const std::string wrong = error.get_exit_code() == 0 ? wrong_topic(words, commands)
                                                         : wrong_command_line(words, commands, error.what());
    return wrong.empty() ? outcome_of([&] { return app.exit(error); }) : told(2, wrong);  // empty: --help
  }
  return outcome_of(chosen);
}

// A fault for each page of 4 KiB is a tenth of a short run. The allocator's first segment, older than main,
// is told apart.
void use_large_pages() {
#ifdef MOEBIUS_MIMALLOC
  mi_option_enable(mi_option_large_os_pages);
  constexpr std::uintptr_t kSegment = std::uintptr_t{32} << 20;  // and its alignment
  const auto inside = std::make_unique<char>();
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(inside.get()) / kSegment * kSegment;
  madvise(reinterpret_cast<void*>(begin), kSegment, MADV_HUGEPAGE);  // a hint: the answer does not matter
#endif
}

}  // namespace
}  // namespace moebius

int main(int argc, char** argv) {
  moebius::use_large_pages();
  moebius::tidy_up_when_interrupted();
  return moebius::start_command(argc, argv);
}
