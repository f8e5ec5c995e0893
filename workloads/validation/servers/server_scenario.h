// One row of measured servers as one scenario: the mapping stands in scenarios/validate/README.md.
#pragma once

#include <optional>
#include <string>

#include "hw/document.h"
#include "models/model.h"
#include "workloads/validation/servers/server_row.h"

namespace moebius {

struct ServerScenario {
  std::optional<Document> scenario;
  std::string left_out = {};  // why there is none, in words that rows of one kind share
  // Rows of one configuration differ in traffic and in how many sequences and tokens an iteration may have.
  std::string configuration = {};
};

double mean_input(const ServerRow& row);  // tokens of a prompt

ServerScenario server_scenario(const ServerRow& row, const ModelCatalog& models);

}  // namespace moebius
