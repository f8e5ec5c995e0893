// The rehearsal's trace: bodies on streams are the kernels.
#pragma once

#include <functional>

#include "real/cuda/kernel_trace.h"

namespace moebius::cuda {

// `work` with a record of its time, for the owner that the calling thread works for; as it is while nothing
// traces.
std::function<void()> traced(Stream stream, std::function<void()> work);

}  // namespace moebius::cuda
