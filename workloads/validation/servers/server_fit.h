// Host costs of frameworks, fitted to the rows of a table that are kept for that and never scored.
#pragma once

#include <string>
#include <vector>

#include "workloads/job.h"
#include "workloads/perform/perform.h"
#include "workloads/validation/servers/server_row.h"

namespace moebius {

struct FittedHost {
  std::string framework;
  int rows = 0;
  Time per_request = {}, per_token = {};  // of its prompt
  // Means of |ln(ours / measured)| of the time to the first token, at most 1 a row: without host costs and
  // with these.
  double loss_without = 0, loss = 0;
};

// Rows of aggregated servers with few users, whose front is the framework's own, are simulated once, with the
// hosts of server_starts.json and the presets; another host is taken to shift their first tokens, and nothing
// else.
std::vector<FittedHost> fit_host_costs(const std::vector<ServerRow>& rows, const Library& library,
                                       const StartExecutor& start);
std::string fit_text(const std::vector<FittedHost>& fits);

}  // namespace moebius
