// Host costs of frameworks, fitted to the rows of a table that are kept for that and never scored.
#pragma once

#include <string>
#include <vector>

#include "workloads/job.h"
#include "workloads/perform.h"
#include "workloads/validation/servers/server_row.h"

namespace moebius {

struct FittedHost {
  std::string framework;
  int rows = 0;
  Time per_request = {}, per_iteration = {};
  // Means of |ln(ours / measured)| of both times together, without host costs and with these.
  double loss_without = 0, loss = 0;
};

// The host's work of an iteration that the device waits for, then the time until a prompt can be computed:
// each the best of a grid, the other held.
std::vector<FittedHost> fit_host_costs(const std::vector<ServerRow>& rows, const Library& library,
                                       const StartExecutor& start);
std::string fit_text(const std::vector<FittedHost>& fits);

}  // namespace moebius
