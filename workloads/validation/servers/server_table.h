// `validate TABLE` where TABLE is of measured servers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workloads/job.h"
#include "workloads/perform/perform.h"
#include "workloads/validation/servers/server_errors.h"

namespace moebius {

struct ServerOptions {
  std::optional<std::int64_t> rows = {};   // so many are simulated; nothing: all
  bool fit = false;                        // host costs of frameworks are fitted, nothing is scored
  std::optional<std::uint64_t> seed = {};  // by which they are drawn; nothing: 1
  std::string scenarios = {};              // a directory for the scenario of each row; nothing is simulated then
  std::function<void(const std::vector<ServerResult>&)> keep = {};  // who else wants the rows; may be empty
};

// Whether the one path is a table (.csv, .csv.gz) with the columns of measured servers.
bool names_servers(const std::vector<std::string>& paths);

// Its table of errors, or one JSON object; or the name of each row's scenario as it was written.
std::string validated_servers(const std::string& path, const Library& library, const StartExecutor& start,
                              const ServerOptions& options, bool json);

}  // namespace moebius
