// The composition root: it knows all rooms, reads the command line and puts the parts together. Each
// subcommand is a list of steps.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/error.h"
#include "real/alignment.h"
#include "real/bench/measuring_device.h"
#include "real/calibration/host_device.h"
#include "real/calibration/host_machine.h"
#include "real/cuda/cuda_bench.h"
#include "real/cuda/cuda_run.h"
#include "real/cuda/cuda_under_test.h"
#include "real/host/host_run.h"
#include "real/processes/run_together.h"
#include "sim/emulate_run.h"
#include "sim/sim_run.h"
#include "workloads/calibration/calibrate.h"
#include "workloads/calibration/device/calibrate_device.h"
#include "workloads/checkpoint/convert.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/kernel_curve.h"
#include "workloads/crosscheck/crosscheck.h"
#include "workloads/explain.h"
#include "workloads/job.h"
#include "workloads/listing.h"
#include "workloads/option_checks.h"
#include "workloads/perform.h"
#include "workloads/report/compare_runs.h"
#include "workloads/report/report.h"
#include "workloads/report/run_directory.h"
#include "workloads/report/summary.h"
#include "workloads/scenario/schema.h"
#include "workloads/schedule_dump.h"

namespace moebius {
namespace {

enum class ExecutorKind { kSim, kHost, kCuda, kEmulate };
const std::vector<std::pair<std::string, ExecutorKind>> kExecutors{{"sim", ExecutorKind::kSim},
                                                                   {"host", ExecutorKind::kHost},
                                                                   {"cuda", ExecutorKind::kCuda},
                                                                   {"emulate", ExecutorKind::kEmulate}};
const std::vector<std::pair<std::string, ExecutorKind>> kReal(kExecutors.begin() + 1, kExecutors.end() - 1);

// What the command line says; each subcommand uses its part.
struct Arguments {
  std::string scenario, data, out, dump, name, run_a, run_b, device, profile;
  double budget = 0;
  Changes changes;
  ExecutorKind executor = ExecutorKind::kSim, real_executor = ExecutorKind::kHost;
  NetworkDetail detail = NetworkDetail::kFluid;
  Driver driver = has_simgrid() ? Driver::kSimGrid : Driver::kPlain;
  std::function<std::shared_ptr<const CostSource>(const Accelerator&)> costs;  // of the simulator's chips
  KernelRequest kernel;
  NetworkView view;
  TablesRequest tables;
  RealRun real;
  ConvertRequest convert;
  bool explain = false, json = false;
};

EmulateRun emulation_of(const Arguments& arguments) {
  return {.simulation = {arguments.data, {arguments.detail, arguments.driver}},
          .read = [&] { return read_job(arguments.scenario, arguments.changes, Library(arguments.data)); },
          .device = [&] { return open_measuring_device(arguments.device, make_cuda_bench); },
          .journal = arguments.out.empty() ? "" : arguments.out + "/ops.jsonl"};
}

// Who carries out the jobs of this command line.
StartExecutor executor_of(ExecutorKind kind, const Arguments& arguments) {
  switch (kind) {
    case ExecutorKind::kSim:
      return [&arguments](const Job& job, const Layout& layout, Recorder& recorder) {
        return start_simulator(job, layout, recorder,
                               {arguments.data, {arguments.detail, arguments.driver}, arguments.costs});
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

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int run_command(const Arguments& arguments) {
  const Library library(arguments.data);
  Job job = read_job(arguments.scenario, arguments.changes, library);
  require_fit(job);
  if (arguments.executor != ExecutorKind::kCuda)
    require_unset(arguments.real.trace_kernels,
                  "--trace-kernels: expected --executor cuda: only a GPU's kernels are traced");
  if (arguments.executor != ExecutorKind::kHost && arguments.executor != ExecutorKind::kCuda)
    require_nothing_computed(job, arguments.real);
  // From here the schedule is decided and the devices can hold it.
  Hooks hooks{.wants_spans = arguments.explain || !arguments.out.empty()};
  std::optional<ScheduleDump> dump;
  if (!arguments.dump.empty()) {
    dump.emplace(arguments.dump);
    hooks.observer = [&](const Submission& submission) { dump->write(submission); };
  }
  const Outcome outcome = perform(job, executor_of(arguments.executor, arguments), hooks);
  if (dump) dump->close();
  const std::string json = report_json(outcome.report), text = report_text(outcome.report);
  if (!arguments.out.empty()) write_run(arguments.out, {json, text}, outcome.timeline);
  print(arguments.json ? json : text);
  if (arguments.explain) fmt::print(arguments.json ? stderr : stdout, "\n{}", explain_run(outcome));
  if (!outcome.interrupted.empty()) throw run_error(outcome.interrupted);
  return 0;
}

// In each process that a launcher started; what one leaves behind, the first one writes.
int in_all_processes(Arguments arguments, ExecutorKind kind, int (*command)(const Arguments&)) {
  if (kind != ExecutorKind::kHost) require_one_process();
  return run_together([&](Processes* processes) {
    arguments.real.processes = processes;
    if (!speaks(processes)) arguments.out = arguments.dump = "";
    return command(arguments);
  });
}

int check_command(const Arguments& arguments) {
  const Library library(arguments.data);
  const Job job = read_job(arguments.scenario, arguments.changes, library);
  print(settings_text(job));
  require_fit(job);
  return 0;
}

int crosscheck_command(const Arguments& given) {
  Arguments arguments = given;
  arguments.real.measured = arguments.real.processes == nullptr;
  arguments.changes.unfold = true;  // numbers need every rank
  const Library library(arguments.data);
  CrosscheckRequest request{[&] { return read_job(arguments.scenario, arguments.changes, library); },
                            executor_of(ExecutorKind::kSim, arguments),
                            executor_of(arguments.real_executor, arguments), arguments.out};
  const bool on_host = arguments.real_executor == ExecutorKind::kHost;
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

int compare_command(const Arguments& arguments) {
  print(compare_runs(arguments.run_a, arguments.run_b));
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
  print(show_text(arguments.name, {library.hardware, library.models}, arguments.view));
  return 0;
}

int calibrate_command(const Arguments& arguments) {
  const Library library(arguments.data);
  if (arguments.device.empty()) {
    print(calibrate_tables(arguments.tables, library.hardware));
    return 0;
  }
  const std::string& out = arguments.tables.out;
  return calibrate_and_tell(arguments.device == "host"
                                ? host_under_test(out)
                                : cuda_under_test(device_index(arguments.device), library.hardware, out),
                            {out, arguments.budget});
}

int convert_command(const Arguments& arguments) {
  print(convert(arguments.convert, ModelCatalog(arguments.data)));
  return 0;
}

int align_command(const Arguments& arguments) {
  const Alignment alignment = align(arguments.run_a, arguments.run_b);
  print(to_text(alignment));
  return alignment.first_drift() == nullptr ? 0 : 1;
}

int schema_command(const Arguments&) {
  print(scenario_schema());
  return 0;
}

// ---- the command line ----

CLI::Validator valid(const OptionCheck& check) {
  return CLI::Validator(check, "");
}

void add_scenario_options(CLI::App& command, Arguments& arguments) {
  command.add_option("SCENARIO", arguments.scenario, "scenario file")->required();
  command
      .add_option("--set", arguments.changes.sets,
                  "/json/pointer=value: changes the scenario; may be given again")
      ->take_all();
  command.add_option("--seed", arguments.changes.seed, "replaces the scenario's seed")
      ->check(valid(whole_number));
}

void add_data_option(CLI::App& command, Arguments& arguments) {
  command.add_option("--data", arguments.data,
                     "directory with catalogs and profiles that extend or override the built-in ones");
}

void add_simulator_options(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--detail", arguments.detail,
                  "how the network is simulated: alpha-beta, fluid (default), packet, native")
      ->transform(valid(one_of(network_details())));
  command
      .add_option("--driver", arguments.driver,
                  "who drives the simulator: simgrid (default where built in), plain")
      ->transform(valid(one_of(drivers())));
}

void add_kernel_options(CLI::App& command, KernelRequest& kernel) {
  command.add_option("--kernel", kernel.kind, "an accelerator's cost of a kernel: " + kernel_kind_names());
  for (const KernelOption& option : kernel_options())
    command.add_option(fmt::format("--{}", option.name), kernel.*option.value, std::string(option.help));
  command.add_option("--dtype", kernel.dtype, "of the operands: bf16, fp8, ...");
  command.add_option("--stored", kernel.stored, "of weights or cache, where it is another: int8, int4, ...");
}

void add_commands(CLI::App& app, Arguments& arguments, std::function<int(const Arguments&)>& chosen) {
  const auto add = [&](const char* name, const char* help, int (*body)(const Arguments&)) {
    CLI::App* command = app.add_subcommand(name, help);
    command->callback([&chosen, body] { chosen = body; });
    return command;
  };
  CLI::App* run = add("run", "simulate or execute a scenario and report",
                      [](const Arguments& a) { return in_all_processes(a, a.executor, run_command); });
  add_scenario_options(*run, arguments);
  add_data_option(*run, arguments);
  add_simulator_options(*run, arguments);
  run->add_option("--executor", arguments.executor,
                  "sim (default): predict; host: execute on this CPU, ranks as threads; cuda: on this GPU; "
                  "emulate: predict, with compute measured on this GPU or CPU")
      ->transform(valid(one_of(kExecutors)));
  run->add_option("--device", arguments.device,
                  "who measures for emulate: host, cuda:0 (default, where it is)");
  run->add_option("--out", arguments.out, "directory for report.json, report.txt, timeline.mtl");
  run->add_option("--dump", arguments.dump, "file for the schedule as text");
  run->add_option("--dump-activations", arguments.real.dump_activations,
                  "file for what each layer puts out in the first microbatch (safetensors)");
  run->add_option("--trace-kernels", arguments.real.trace_kernels,
                  "cuda: file for the kernels and copies of each op, with their times (by CUPTI)");
  run->add_flag("--explain", arguments.explain,
                "also every op of one layer: shape, time, where the time is known from");
  run->add_flag("--json", arguments.json, "print the report as one JSON object");
  CLI::App* check =
      add("check", "validate a scenario; print every setting in use and the memory it needs", check_command);
  add_scenario_options(*check, arguments);
  add_data_option(*check, arguments);
  CLI::App* crosscheck =
      add("crosscheck", "simulate and execute the same schedule; compare ops, order and bytes",
          [](const Arguments& a) { return in_all_processes(a, a.real_executor, crosscheck_command); });
  add_scenario_options(*crosscheck, arguments);
  add_data_option(*crosscheck, arguments);
  add_simulator_options(*crosscheck, arguments);
  crosscheck->add_option("--executor", arguments.real_executor, "who executes: host (default), cuda")
      ->transform(valid(one_of(kReal)));
  crosscheck->add_option("--profile", arguments.profile,
                         "what calibrate --device measured: simulates the machine that executes");
  crosscheck->add_option("--out", arguments.out, "directory for simulated/, executed/ and crosscheck.json");
  crosscheck->add_flag("--json", arguments.json, "print the result as one JSON object");
  CLI::App* compare =
      add("compare", "join two runs of one schedule op by op; compare what they learned", compare_command);
  compare->add_option("RUN_A", arguments.run_a, "a run's directory or timeline")->required();
  compare->add_option("RUN_B", arguments.run_b, "another one")->required();
  CLI::App* list = add("list", "list what the catalogs hold", list_command);
  list->add_option("WHAT", arguments.name, fmt::format("{}", fmt::join(listable(), ", ")))->required();
  add_data_option(*list, arguments);
  CLI::App* show = add("show", "show one accelerator, node, fabric, storage device or model with its sources",
                       show_command);
  show->add_option("NAME", arguments.name, "id or alias; or a scenario file, for its network")->required();
  add_kernel_options(*show, arguments.kernel);
  for (const ViewOption& option : view_options())
    show->add_option(fmt::format("--{}", option.name), arguments.view.*option.value,
                     std::string(option.help));
  add_data_option(*show, arguments);
  CLI::App* calibrate =
      add("calibrate", "make a kernel profile from published tables, or by measuring a device",
          calibrate_command);
  CLI::Option* from =
      calibrate->add_option("--from", arguments.tables.from, "directory with the tables (CSV)")
          ->check(valid(existing_directory));
  CLI::Option* whose =
      calibrate->add_option("--accelerator", arguments.tables.accelerator, "whose rows: id, alias or all");
  CLI::Option* out = calibrate->add_option("--out", arguments.tables.out,
                                           "the file to write; profiles of all: their directory");
  whose->needs(out);
  calibrate
      ->add_flag("--model-errors", arguments.tables.model_errors,
                 "instead: errors of the analytic model, every chip told with constants of others")
      ->excludes(whose, out);
  calibrate
      ->add_option("--fit", arguments.tables.fit,
                   "instead: fit constants and write their file: " + fits_text())
      ->excludes(whose);
  CLI::Option* device =
      calibrate
          ->add_option("--device", arguments.device, "measure a device instead: host (one core), cuda:0, ...")
          ->check(valid(device_name))
          ->needs(out)
          ->excludes(from, whose);
  calibrate
      ->add_option("--budget", arguments.budget,
                   "seconds to measure for; else as long as the device takes: 240 (host), 480 (cuda)")
      ->check(valid(positive_number))
      ->needs(device);
  add_data_option(*calibrate, arguments);
  CLI::App* convert = add("convert", "cut a checkpoint for other ranks, or put it together for Hugging Face",
                          convert_command);
  convert->add_option("IN", arguments.convert.in, "checkpoint: Hugging Face's or ours")->required();
  convert->add_option("--to", arguments.convert.to, "hf, or degrees such as tp=2,pp=2,ep=4")->required();
  convert->add_option("--out", arguments.convert.out, "directory to make")->required();
  convert->add_option("--model", arguments.convert.model, "whose weights they are; else as config.json says");
  add_data_option(*convert, arguments);
  CLI::App* align =
      add("align", "compare a run's activations with a reference, layer by layer", align_command);
  align->add_option("RUN", arguments.run_a, "what run --dump-activations wrote")->required();
  align->add_option("--reference", arguments.run_b, "activations of the same modules (safetensors)")
      ->required();
  add("schema", "print the JSON Schema of scenario files", schema_command);
}

int start_command(int argc, char** argv) {
  CLI::App app("Simulates Mixture-of-Experts on any cluster and executes the same schedules.", "moebius");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  Arguments arguments;
  std::function<int(const Arguments&)> chosen;
  add_commands(app, arguments, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    const std::string unknown = unknown_command(argc < 2 ? "" : argv[1], names);
    fmt::print(stderr, "moebius: {}\n", unknown.empty() ? error.what() : unknown);
    return 2;
  }
  try {
    return chosen(arguments);
  } catch (const Error& error) {
    fmt::print(stderr, "moebius: {}\n", error.what());
    return error.kind() == Error::Kind::kInput ? 2 : 1;
  }
}

}  // namespace
}  // namespace moebius

int main(int argc, char** argv) {
  return moebius::start_command(argc, argv);
}
