#include "workloads/serving/system/expert_figures.h"

namespace moebius {

ExpertFigures figures_of(const ExpertCourse& course, const BalancerShape& shape,
                         const std::vector<ExpertBalancer*>& instances) {
  ExpertFigures figures;
  figures.layers = course.layers();
  figures.experts = course.experts() + shape.always;
  figures.slots = shape.slots;
  figures.ranks = shape.ranks;
  figures.even = course.even();
  figures.copies.assign(static_cast<std::size_t>(figures.layers) * figures.experts, 0.0);
  for (int i = 0; i < figures.layers; ++i) figures.layer_numbers.push_back(course.layer(i));
  double tokens = 0, imbalance = 0;
  for (ExpertBalancer* balancer : instances) {
    balancer->finish();
    figures.rebalances.insert(figures.rebalances.end(), balancer->rebalances().begin(),
                              balancer->rebalances().end());
    figures.more_rebalances += balancer->more_rebalances();
    tokens += balancer->tokens();
    imbalance += balancer->tokens() * balancer->mean_imbalance();
    for (std::size_t c = 0; c < figures.copies.size(); ++c) figures.copies[c] += balancer->copies()[c];
  }
  if (tokens > 0) figures.imbalance = imbalance / tokens;
  return figures;
}

}  // namespace moebius
