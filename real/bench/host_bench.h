// The bench on the host: an op runs on one core as HostExecutor runs it, alone. What counts is the core's
// time for compute() and the storing of its results (CLOCK_THREAD_CPUTIME_ID): other users of the machine do
// not show, waiting for memory does.
#pragma once

#include <cstdint>
#include <memory>

#include "workloads/cost/op_bench.h"

namespace moebius {

// cores() is 1; what an op holds of a simulated chip says nothing here. Ops whose operands the free memory
// does not hold are run_error with both sizes.
// `bytes_between`: between repetitions of a hot query (CostQuery::hot) so much other memory is read, as a
// step touches it between two uses of an operand, and then the first operand, which the op before has made:
// the others (weights, what was kept for the backward pass) stand in the first cache that holds so much.
std::unique_ptr<OpBench> make_host_bench(std::uint64_t seed = 1, std::size_t bytes_between = 0);

// What the system could give to a new process, in bytes; 0 where it does not say.
double free_host_memory();

// Bytes that the host needs for one op: every element takes 32 bits, and what kernels copy besides.
double host_bytes(const CostQuery& query);

}  // namespace moebius
