// What a page shows of weeks of a cluster, each part empty where the run has nothing of it.
#pragma once

#include <string>

#include "viz/page/figures.h"

namespace moebius::viz {

std::string time_of_cards(const Figures& figures);  // of all cards of queues; of nodes, job by job
std::string cluster_picture(const std::string& directory);
std::string queues(const Figures& figures);
std::string shapes(const Figures& figures);

}  // namespace moebius::viz
