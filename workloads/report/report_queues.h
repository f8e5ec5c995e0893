// Many jobs on one cluster, as figures for scripts, text for people and a picture.
#pragma once

#include <string>

#include "workloads/cluster/queue/queue_figures.h"
#include "workloads/report/report_serving.h"

namespace moebius {

FigureTree queues_tree(const QueueFigures& figures);
std::string queues_text(const QueueFigures& figures);

}  // namespace moebius
