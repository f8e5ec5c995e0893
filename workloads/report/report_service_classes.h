// What a service gave each class of requests, and what it cost.
#pragma once

#include <string>

#include "workloads/report/report_serving.h"
#include "workloads/serving/system/service_policies.h"

namespace moebius {

// Part `classes` of a service's report (none without goals), and `cost`.
// What was promised, in seconds; what was not is left out.
FigureTree goal_tree(const ServiceGoal& goal);
// `does`: tokens that nobody computed have no cost.
void add_classes(FigureTree& tree, const ServiceFigures& service, PoolRole does);
void add_cost(FigureTree& tree, const ServiceFigures& service, PoolRole does);
std::string classes_text(const ServiceFigures& service, PoolRole does);  // a table, of several classes
std::string cost_text(const ServiceFigures& service, PoolRole does);

}  // namespace moebius
