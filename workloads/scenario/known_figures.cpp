#include "workloads/scenario/known_figures.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

// Of training, of serving, of the other kinds, of all.
const std::vector<std::string>& figures() {
  static const std::vector<std::string> names{"step_time_s",
                                              "first_step",
                                              "tokens_per_s",
                                              "tokens_per_s_per_device",
                                              "packing",
                                              "rl",
                                              "mfu",
                                              "mfu_causal",
                                              "tflops_per_device",
                                              "tflops_per_device_causal",
                                              "breakdown",
                                              "memory",
                                              "network",
                                              "experts",
                                              "run_time_s",
                                              "output_tokens_per_s",
                                              "output_tokens_per_s_per_device",
                                              "output_tokens_per_s_per_node",
                                              "input_tokens_per_s",
                                              "input_tokens_per_s_per_device",
                                              "input_tokens_per_s_per_node",
                                              "devices",
                                              "iterations",
                                              "prefill_iterations",
                                              "requests",
                                              "ttft_s",
                                              "tpot_s",
                                              "itl_s",
                                              "e2e_s",
                                              "goodput_rps",
                                              "slo_attainment",
                                              "sla",
                                              "kv",
                                              "eplb",
                                              "transferred_bytes",
                                              "intake_s",
                                              "request_time_s",
                                              "pools",
                                              "encoder",
                                              "series",
                                              "classes",
                                              "cost",
                                              "collective",
                                              "tenants",
                                              "flows",
                                              "cluster",
                                              "measured",
                                              "uncertainty",
                                              "ops",
                                              "dropped_spans",
                                              "seed",
                                              "wall_s",
                                              "cpu_s",
                                              "max_rss_bytes"};
  return names;
}

}  // namespace

void require_known_figure(const std::string& metric, const Place& place) {
  const std::string first = metric.substr(0, metric.find('.'));
  if (std::find(figures().begin(), figures().end(), first) != figures().end()) return;
  place.fail(fmt::format("no report has a figure named \"{}\"{}", first, suggestion(first, figures())));
}

}  // namespace moebius
