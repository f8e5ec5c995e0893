#include "workloads/validation/servers/server_table.h"

#include "workloads/calibration/csv.h"
#include "workloads/validation/servers/server_errors.h"
#include "workloads/validation/servers/server_fit.h"

namespace moebius {

bool names_servers(const std::vector<std::string>& paths) {
  if (paths.size() != 1) return false;
  const std::string& path = paths.front();
  return (path.ends_with(".csv") || path.ends_with(".csv.gz")) && is_server_table(Csv(path));
}

std::string validated_servers(const std::string& path, const Library& library, const StartExecutor& start,
                              const ServerOptions& options, bool json) {
  const std::vector<ServerRow> rows = server_rows(Csv(path), path);
  if (options.fit) return fit_text(fit_host_costs(rows, library, start));
  const std::vector<ServerResult> results =
      simulate_servers(rows, library, start, options.rows.value_or(0), options.seed.value_or(1));
  if (options.keep) options.keep(results);
  return json ? servers_json(results) : servers_text(results);
}

}  // namespace moebius
