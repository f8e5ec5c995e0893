// Among which groups of experts a token chooses, where a plan limits the nodes that it goes to.
#include <algorithm>

#include "workloads/training/layers/lowering.h"

namespace moebius {

// A model's own groups, where those that a token uses stand on so few nodes anyway. Else the experts of a
// node are one, unless as many nodes hold more of the model's groups than it lets a token use, or these stand
// on several nodes and it uses fewer.
ExpertGroups expert_groups(const TrainingPlan& plan, const Experts& experts, int devices) {
  const int most = plan.nodes_per_token, of_node = std::max(1, devices / plan.expert_tp);
  const int nodes = (plan.ep + of_node - 1) / of_node;
  const bool within_nodes = experts.groups % nodes == 0;  // no group stands on two
  const int of_group =
      within_nodes ? 1
                   : (nodes + experts.groups - 1) / experts.groups + (nodes % experts.groups == 0 ? 0 : 1);
  if (most == 0 || most >= std::min(nodes, experts.active_groups * of_group))
    return {experts.groups, experts.active_groups};
  if (within_nodes && most * (experts.groups / nodes) > experts.active_groups) return {experts.groups, most};
  return {nodes, experts.groups == 1 ? most : std::min(most, experts.active_groups)};
}

}  // namespace moebius
