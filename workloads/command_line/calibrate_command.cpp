#include "workloads/command_line/calibrate_command.h"

#include <memory>
#include <utility>

#include "hw/new_file.h"
#include "workloads/calibration/calibrate.h"
#include "workloads/calibration/device/calibrate_device.h"

namespace moebius {

namespace {

struct CalibrateArguments {
  TablesRequest tables;
  std::string device, storage, data;
  double budget = 0;
};

CommandOptions options_of(CalibrateArguments& arguments) {
  TablesRequest& tables = arguments.tables;
  return {{"--from", &tables.from, "directory with the tables (CSV)", existing_directory},
          {.name = "--accelerator",
           .target = &tables.accelerator,
           .help = "whose rows: id, alias or all",
           .needs = {"--out"},
           .values = {"all"},
           .catalogs = {"accelerators"}},
          {"--out", &tables.out, "the file to write; profiles of all: their directory"},
          {.name = "--model-errors",
           .target = &tables.model_errors,
           .help = "instead: errors of the analytic model, every chip told with constants of others",
           .excludes = {"--accelerator", "--out"}},
          {.name = "--fit",
           .target = &tables.fit,
           .help = "instead: fit constants and write their file: " + fits_text(),
           .excludes = {"--accelerator", "--model-errors", "--device"},
           .values = fit_names()},
          {.name = "--device",
           .target = &arguments.device,
           .help = "measure a device instead: host (one core), cuda:0, ...",
           .check = device_name,
           .needs = {"--out"},
           .excludes = {"--from", "--accelerator"},
           .values = {"host", "cuda:0"}},
          {.name = "--budget",
           .target = &arguments.budget,
           .help = "seconds to measure for (too few are refused with what it takes); else as the device "
                   "takes: 240 (host), 480 (cuda)",
           .check = positive_number,
           .needs = {"--device"}},
          {.name = "--storage",
           .target = &arguments.storage,
           .help = "write the drive that --out is on as a catalog, the storage.json of a --data directory",
           .check = in_existing_directory,
           .needs = {"--device"}},
          data_option(arguments.data)};
}

}  // namespace

Command calibrate_command(OpenDevice open) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  const auto calibrate = [arguments, open = std::move(open)] {
    const Catalog catalog(arguments->data);
    if (arguments->device.empty()) {
      print(calibrate_tables(arguments->tables, catalog));
      return 0;
    }
    const std::string& out = arguments->tables.out;
    for (const std::string& path : {out, arguments->storage})
      if (!path.empty()) require_writable(path);  // before the measurement
    return calibrate_and_tell(open(arguments->device, catalog, out),
                              {.out = out, .budget = arguments->budget, .storage = arguments->storage});
  };
  return {"calibrate", "make a kernel profile from published tables, or by measuring a device",
          options_of(*arguments), calibrate};
}

}  // namespace moebius
