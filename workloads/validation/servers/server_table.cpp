#include "workloads/validation/servers/server_table.h"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/new_file.h"
#include "workloads/calibration/csv.h"
#include "workloads/report/run_directory.h"
#include "workloads/validation/servers/server_errors.h"
#include "workloads/validation/servers/server_fit.h"
#include "workloads/validation/servers/server_scenario.h"

namespace moebius {
namespace {

// Each row that can be simulated as a scenario by itself; its file, or why there is none.
std::string written_scenarios(const std::vector<ServerRow>& rows, const ModelCatalog& models,
                              const std::string& directory) {
  const MadeDirectories made(directory);
  std::string text;
  for (const ServerRow& row : rows) {
    const ServerScenario of = server_scenario(row, models);
    const std::string path =
        (std::filesystem::path(directory) / fmt::format("row-{}.json", row.line)).string();
    if (of.scenario) write_file(path, to_json(of.scenario->root) + "\n");
    text += of.scenario ? fmt::format("{}\n", path) : fmt::format("row {}: {}\n", row.line, of.left_out);
  }
  return text;
}

}  // namespace

bool names_servers(const std::vector<std::string>& paths) {
  if (paths.size() != 1) return false;
  const std::string& path = paths.front();
  if (!path.ends_with(".csv") && !path.ends_with(".csv.gz")) return false;
  const Csv table(path);
  if (const std::vector<std::string> missing = missing_server_columns(table); !missing.empty())
    throw input_error(fmt::format("{}:1: a table of measured servers: expected the column{} {}, found none",
                                  path, missing.size() == 1 ? "" : "s", fmt::join(missing, ", ")));
  return is_server_table(table);
}

std::string validated_servers(const std::string& path, const Library& library, const StartExecutor& start,
                              const ServerOptions& options, bool json) {
  const std::vector<ServerRow> rows = server_rows(Csv(path));
  if (rows.empty()) throw input_error(fmt::format("{}: expected rows of measured servers, found none", path));
  if (!options.scenarios.empty()) return written_scenarios(rows, library.models, options.scenarios);
  if (options.fit) return fit_text(fit_host_costs(rows, library, start));
  const std::vector<ServerResult> results =
      simulate_servers(rows, library, start, options.rows.value_or(0), options.seed.value_or(1));
  if (options.keep) options.keep(results);
  return json ? servers_json(results) : servers_text(results);
}

}  // namespace moebius
