// A whole service carried out op by op by an executor, under its clock, with the decisions that a simulated
// one makes (workloads/serving/carried/).
#pragma once

#include "workloads/job.h"
#include "workloads/report/report.h"
#include "workloads/serving/system/service_figures.h"

namespace moebius {

// Gives a job that is_service() the workload that carries it out, every rank by itself. input_error for what
// is simulated only.
void carry_out(Job& job);

// Of such a job, once it is done. Latencies are those that the system counted, as of a simulated service, so
// that all requests together and those of each class agree.
ServiceFigures carried_figures(const Job& job, const RunFacts& facts, const Metrics& metrics);
ServingFigures figures_of_service(const Job& job);

}  // namespace moebius
