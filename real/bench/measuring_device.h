// Which device of this machine measures ops.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "workloads/cost/measured_ops.h"

namespace moebius {

using MakeBench = std::function<std::unique_ptr<OpBench>()>;

// `device`: "host", "cuda:0", or empty: the GPU where there is one, else the host. input_error for other
// names; cuda:0 fails as `make_cuda` does.
std::unique_ptr<OpBench> open_bench(const std::string& device, const MakeBench& make_cuda);

// The same with what is known of its memory (the host's; a GPU says it when it is full).
MeasuringDevice open_measuring_device(const std::string& device, const MakeBench& make_cuda);

}  // namespace moebius
