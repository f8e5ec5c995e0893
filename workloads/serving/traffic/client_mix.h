// Traffic of many clients of different habits, each with a rate, bursts and lengths of its own: what ServeGen
// (arXiv 2505.09999) found in the requests of a cloud, and how it makes them again. The file is JSON:
//   {"requests": 1000, "seed": 1, "clients": [
//     {"name": "chat", "rate": 2.5, "cv": 1.4,                  // requests a second; deviation of gaps over
//     mean
//      "input_tokens": {"128": 0.25, "4096": 0.75},              // lengths and how often they are asked
//      "output_tokens": {"mean": 300, "sigma": 0.8}}]}           // or lognormal
// Such requests say nothing of what they share. Without a seed of its own the mix is drawn by the scenario's.
#pragma once

#include <memory>
#include <string>

#include "workloads/serving/traffic/traffic_request.h"

namespace moebius {

// Packed by gzip or not. input_error for what is not of that form.
std::unique_ptr<TrafficStream> read_client_mix(const std::string& path, std::uint64_t seed);

}  // namespace moebius
