#include "workloads/command_line/catalog_commands.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/kernel_curve.h"
#include "workloads/crosscheck/virtual_machine.h"
#include "workloads/job.h"
#include "workloads/listing/listing.h"
#include "workloads/option_checks.h"
#include "workloads/scenario/schema.h"

namespace moebius {

namespace {

struct ShowArguments {
  std::string name, data;
  std::vector<std::string> sets;
  KernelRequest kernel;
  NetworkView view;
};

CommandOptions kernel_options_of(KernelRequest& kernel) {
  CommandOptions options{
      {.name = "--kernel",
       .target = &kernel.kind,
       .help = fmt::format("an accelerator's cost of a kernel: {}", fmt::join(kernel_kind_names(), ", ")),
       .values = kernel_kind_names()}};
  for (const KernelOption& option : kernel_options())
    options.push_back({fmt::format("--{}", option.name), &(kernel.*option.value), std::string(option.help)});
  options.push_back({.name = "--dtype",
                     .target = &kernel.dtype,
                     .help = "of the operands: bf16, fp8, ...",
                     .values = kernel_dtype_names()});
  options.push_back({.name = "--stored",
                     .target = &kernel.stored,
                     .help = "of weights or cache, where it is another: int8, int4, ...",
                     .values = kernel_stored_names()});
  return options;
}

CommandOptions view_options_of(NetworkView& view) {
  CommandOptions options;
  for (const ViewOption& option : view_options())
    options.push_back({fmt::format("--{}", option.name), &(view.*option.value), std::string(option.help)});
  for (CommandOption& option : options)
    if (option.name == "--node") option.catalogs = {"nodes"};
  return options;
}

std::string shown(const ShowArguments& arguments) {
  const Library library(arguments.data);
  const Shelves shelves{library.hardware, library.models};
  if (arguments.kernel.kind.empty()) {
    require_no_kernel(arguments.kernel);
    return show_text(arguments.name, shelves, arguments.view, arguments.sets);
  }
  for (const ViewOption& option : view_options())
    require_unset(arguments.view.*option.value,
                  fmt::format("--{}: expected a network to show, found --kernel", option.name));
  require_known_chips(library.hardware, arguments.data, kHostAccelerator);
  const Accelerator chip = shown_accelerator(arguments.name, shelves, arguments.sets);
  const ClockPower power = clock_power(chip, find_profiles(chip, arguments.data));
  return to_text(kernel_curve(arguments.kernel, chip, *make_cost_source(chip, arguments.data), power));
}

}  // namespace

Command list_command() {
  const auto arguments = std::make_shared<ShowArguments>();
  const auto list = [arguments] {
    if (arguments->name.empty())
      throw input_error(fmt::format("list: expected one of {}, found nothing", fmt::join(listable(), ", ")));
    const Library library(arguments->data);
    print(list_text(arguments->name, {library.hardware, library.models}));
    return 0;
  };
  return {"list",
          "list what the catalogs hold",
          {{.name = "WHAT",
            .target = &arguments->name,
            .help = fmt::format("{}", fmt::join(listable(), ", ")),
            .values = listable()},
           data_option(arguments->data)},
          list};
}

Command show_command() {
  const auto arguments = std::make_shared<ShowArguments>();
  const auto show = [arguments] {
    print(shown(*arguments));
    return 0;
  };
  const CommandOption name{.name = "NAME",
                           .target = &arguments->name,
                           .help = "id or alias; a scenario file, for its network; a Hugging Face "
                                   "config.json, for what is read of it",
                           .required = true,
                           .catalogs = {"accelerators", "nodes", "fabrics", "storage", "models"}};
  const CommandOption set{"--set", &arguments->sets, "/json/pointer=value: changes it; may be given again"};
  return {"show", "show one accelerator, node, fabric, storage device or model with its sources",
          joined({{name, set},
                  kernel_options_of(arguments->kernel),
                  view_options_of(arguments->view),
                  {data_option(arguments->data)}}),
          show};
}

Command schema_command() {
  return {"schema", "print the JSON Schema of scenario files", {}, [] {
            print(scenario_schema());
            return 0;
          }};
}

}  // namespace moebius
