// The jobs of a cluster's queues, each alone: what its step or its replica's tokens take is simulated once
// for every pool and size.
#pragma once

#include <functional>
#include <memory>

#include "workloads/job.h"

namespace moebius {

// Reads the scenario of a shape with the cluster's own machines in place of its own: so many cards of one
// pool, on the cluster's fabric. On a part of a node a plan of a whole one has fewer replicas. Errors are
// those of read_job and require_fit, and an input_error where its plan is not one of so many devices.
std::function<std::unique_ptr<Job>(int shape, int pool, int cards)> shape_reader(const Document& document,
                                                                                 const Scenario& scenario,
                                                                                 const Library& library);

// input_error where the scenario of a shape is not there, is not what jobs of its class do, is of another
// model than its state, or can be read on none of its pools at one of its sizes, as one of so many devices.
void check_shapes(const Document& document, const Scenario& scenario, const Library& library);

}  // namespace moebius
