// What a service gave each class of requests, and what it cost.
#pragma once

#include <string>

#include "workloads/report/report_serving.h"

namespace moebius {

// Part `classes` of a service's report (none without goals), and `cost`.
// What was promised, in seconds; what was not is left out.
FigureTree goal_tree(const ServiceGoal& goal);
void add_classes(FigureTree& tree, const ServiceFigures& service);
void add_cost(FigureTree& tree, const ServiceFigures& service);
std::string classes_text(const ServiceFigures& service);  // a table, of several classes
std::string cost_text(const ServiceFigures& service);

}  // namespace moebius
