// A run of two stages that is the same for ever, with everything that screens show: for pictures and for
// scripts.
#pragma once

#include <string>

#include "tests/process.h"
#include "workloads/schedule/timeline.h"

namespace moebius::test {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Eight microbatches go through two stages: each stage computes three ops, dispatches to its experts between
// them, and the first sends to the second. Times are in microseconds, times 1,000. The op "gemm down L1" of
// microbatch 5 in stage 1 takes `longer` ns more.
inline Timeline two_stages(std::int64_t longer = 0) {
  Timeline t;
  t.facts = {
      {"scenario", "two stages"}, {"executor", "sim"}, {"schedule_hash", "12ab"}, {"timeline_detail", "ops"}};
  t.fragments = {"forward stage 0", "forward stage 1"};
  t.counters = {"memory", "wire nic-out 0", "wire nic-out 1", "tier nic-out mean"};
  t.class_ranks = {0, 4};
  t.class_sizes = {4, 4};
  for (std::int32_t stage = 0; stage < 2; ++stage) {
    const auto layer = static_cast<std::int16_t>(stage);
    t.ops.push_back({.kind = OpKind::kAttention,
                     .role = Role::kAttention,
                     .layer = layer,
                     .fragment = stage,
                     .index = 0,
                     .flops = 4e9});
    t.ops.push_back({.kind = OpKind::kDispatch,
                     .lane = Lane::kExpertComm,
                     .role = Role::kExperts,
                     .group = GroupRole::kExpert,
                     .layer = layer,
                     .fragment = stage,
                     .index = 1,
                     .payload = 1e6});
    t.ops.push_back({.kind = OpKind::kGroupedGemm,
                     .role = Role::kExpertGateUp,
                     .layer = layer,
                     .fragment = stage,
                     .index = 2,
                     .flops = 8e9});
    t.ops.push_back({.kind = OpKind::kGemm,
                     .role = Role::kDown,
                     .layer = layer,
                     .fragment = stage,
                     .index = 3,
                     .flops = 2e9});
    const bool sends = stage == 0;
    t.ops.push_back({.kind = sends ? OpKind::kSend : OpKind::kRecv,
                     .lane = sends ? Lane::kSendForward : Lane::kRecvForward,
                     .role = Role::kPipeline,
                     .fragment = stage,
                     .index = 4,
                     .payload = 5e5});
  }
  std::int64_t free[2] = {0, 0};
  for (std::int32_t mb = 0; mb < 8; ++mb) {
    std::int64_t arrived = 0;
    for (std::int32_t stage = 0; stage < 2; ++stage) {
      const std::int32_t sequence = 2 * mb + stage;
      t.submissions.push_back({sequence, stage, stage, 0, mb});
      std::int64_t at = std::max(free[stage], arrived);
      const auto add = [&](std::int32_t op, Lane lane, std::int64_t start, std::int64_t end,
                           std::int64_t work = 0) {
        t.spans.push_back({.sequence = sequence,
                           .op = op,
                           .rank_class = stage,
                           .lane = lane,
                           .start = {start},
                           .end = {end},
                           .work_start = {work}});
      };
      if (stage == 1)
        add(4, Lane::kRecvForward, std::min(free[1], arrived - 20'000), arrived, arrived - 20'000);
      add(0, Lane::kCompute, at, at + 40'000);
      add(1, Lane::kExpertComm, at + 40'000, at + 70'000);
      const std::int64_t down = at + 130'000, more = stage == 1 && mb == 5 ? longer : 0;
      add(2, Lane::kCompute, at + 70'000, down);
      add(3, Lane::kCompute, down, down + 25'000 + more);
      free[stage] = down + 25'000 + more;
      if (stage == 0) add(4, Lane::kSendForward, free[0], free[0] + 20'000);
      arrived = free[stage] + 20'000;
      t.samples.push_back({0, stage, {at}, 1e9 * (1 + mb % 3) + 4e9 * stage});
      t.samples.push_back({1 + stage, stage, {at}, 0.1 * mb});
      t.samples.push_back({3, 0, {at}, 0.1 * mb});
    }
  }
  return t;
}

inline constexpr const char* kReport = R"({"scenario": "two stages", "kind": "training",
  "memory": {"peak_bytes": 7e9, "capacity_bytes": 8e9, "by_kind": {"weights": 2e9, "gradients": 1e9, "activations": 4e9}},
  "network": {"sent_bytes": 1.2e7, "binding": {"tier": "NIC out", "busy_share": 0.4},
    "tiers": [{"tier": "NIC out", "busy_share": 0.3, "most_busy_share": 0.4}, {"tier": "NIC in", "busy_share": 0.2, "most_busy_share": 0.25}]},
  "experts": {"layers": [{"step": 0, "layer": 0, "busiest_expert": 3.5, "busiest_rank": 1.5},
                         {"step": 0, "layer": 1, "busiest_expert": 2.5, "busiest_rank": 1.25}]}})";

inline constexpr const char* kServiceReport =
    R"({"scenario": "a service", "kind": "serving", "output_tokens_per_s": 974,
  "requests": {"submitted": 100, "completed": 99}, "goodput_rps": 2.5, "slo_attainment": 0.97,
  "ttft_s": {"mean": 0.3, "p50": 0.1, "p90": 0.8, "p99": 3.5}, "tpot_s": {"mean": 0.009, "p50": 0.0087, "p90": 0.01, "p99": 0.011},
  "request_time_s": {"queue": 5, "prefill": 30, "handover": 1, "decode": 290},
  "kv": {"hit_blocks": 400, "total_blocks": 1000, "block_tokens": 64,
         "tiers": [{"tier": "HBM", "capacity_bytes": 4e10, "hit_blocks": 300}, {"tier": "DRAM", "capacity_bytes": 1e12, "hit_blocks": 100}]},
  "pools": {"prefill": {"devices": 8, "instances": 8, "iterations": 1709, "busy": 0.11, "rows_of_fullest_over_mean": 1.0, "blocks": 1483, "peak_blocks": 1483}}})";

// Writes NAME/timeline.mtl and NAME/report.json into the scratch directory; returns its path.
inline std::string write_run_as(const Scratch& scratch, const std::string& name, const Timeline& timeline,
                                const std::string& report) {
  std::filesystem::create_directories(scratch.path(name));
  save_timeline(timeline, scratch.path(name + "/timeline.mtl"));
  if (!report.empty()) scratch.write(name + "/report.json", report);
  return scratch.path(name);
}

}  // namespace moebius::test
