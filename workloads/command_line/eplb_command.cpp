#include "workloads/command_line/eplb_command.h"

#include <memory>
#include <string>

#include "workloads/serving/balancing/placement_request.h"

namespace moebius {

Command eplb_command() {
  struct Arguments {
    std::string input;
    bool json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  const auto place = [arguments] {
    const PlacedLayers placed = place_layers(read_placement_request(load_document(arguments->input)));
    print(arguments->json ? placement_json(placed) : placement_text(placed));
    return 0;
  };
  return {"eplb",
          "place experts, the loaded ones more than once, so that devices are evenly loaded",
          {{.name = "INPUT",
            .target = &arguments->input,
            .help = "JSON: weights by layer and expert, num_replicas, num_groups, num_nodes, num_gpus",
            .required = true},
           {"--json", &arguments->json, "print phy2log, log2phy, logcnt and gpu_load as one JSON object"}},
          place};
}

}  // namespace moebius
