// What a report says of the engine around the iterations of a service: the host's time, rows computed in
// vain. Nothing where the plan asks for none of it.
#pragma once

#include <iterator>
#include <string>

#include "workloads/report/report_serving.h"
#include "workloads/serving/system/service_figures.h"
#include "workloads/serving/system/service_plan.h"

namespace moebius {

FigureTree with_engine(FigureTree pool, const ServicePoolFigures& figures, const ServicePlan& plan);
void engine_lines(std::back_insert_iterator<std::string> out, const ServiceFigures& service,
                  const ServicePlan& plan);

}  // namespace moebius
