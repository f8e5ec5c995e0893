#include "workloads/validation/servers/server_scenario.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/json_text.h"
#include "workloads/validation/servers/server_rules.h"
#include "workloads/validation/servers/server_start.h"

namespace moebius {
namespace {

constexpr int kOfNode = 8;  // devices of an HGX board

struct LeftOut {
  std::string reason;
};

struct Formats {
  std::string precision;  // of /plan, as JSON
  bool per_tensor = false;
};

Model model_of(const ServerRow& row, const ModelCatalog& models) {
  Model model;
  try {
    model = models.model(row.model);
  } catch (const Error&) {
    throw LeftOut{fmt::format("{} is not in the catalog", row.model)};
  }
  if (!model.unsupported.empty())
    throw LeftOut{fmt::format("{} cannot run: {}", row.model,
                              model.unsupported.substr(0, model.unsupported.find(':')))};
  return model;
}

std::string accelerator_of(const ServerRow& row) {
  std::string id = row.system;
  std::replace(id.begin(), id.end(), '_', '-');
  constexpr std::array kKnown{"h100-sxm", "h200-sxm", "b200-sxm"};
  if (std::find(kKnown.begin(), kKnown.end(), id) == kKnown.end())
    throw LeftOut{fmt::format("{} has no tables of serving kernels", row.system)};
  return id;
}

// Degrees that count the devices of a group twice (tp x dp = moe_tp x moe_ep = n x n, where n devices serve):
// benchmarks that give "TP n, EP n" or "TP n, attention DP" became rows of n x n ranks, more than a board
// has.
ServerDegrees counted_once(ServerDegrees d, bool moe) {
  d.tp = std::max(1, d.tp), d.dp = std::max(1, d.dp), d.pp = std::max(1, d.pp);
  if (!moe) return d;
  const int ranks = d.tp * d.dp, n = static_cast<int>(std::lround(std::sqrt(ranks)));
  const bool twice = n > 1 && n * n == ranks && d.moe_tp * d.moe_ep == ranks;
  if (twice && d.moe_tp == n && d.moe_ep == n) {
    d.tp = d.tp == ranks ? n : 1, d.dp = d.dp == ranks ? n : 1;
    d.moe_tp = 1;
  } else if (twice && d.tp == n && d.dp == n && d.moe_tp == 1) {
    d.tp = 1, d.moe_ep = n;
  }
  return d;
}

ServerDegrees degrees_of(const ServerDegrees& given, const Model& model, const char* what) {
  const bool moe = model.experts.routed > 0;
  if (given.workers == 0 || given.tp == 0) throw LeftOut{fmt::format("{} is not told", what)};
  ServerDegrees d = counted_once(given, moe);
  if (!moe) d.moe_tp = d.tp, d.moe_ep = 1;
  if (d.moe_tp == 0 || d.moe_ep == 0) throw LeftOut{fmt::format("how experts stand is not told ({})", what)};
  if (d.moe_tp * d.moe_ep != d.tp * d.dp)
    throw LeftOut{"degrees of attention and experts contradict each other"};
  constexpr std::int64_t kMostDevices = 1 << 20;
  if (std::int64_t{d.workers} * d.tp * d.dp * d.pp > kMostDevices)
    throw LeftOut{fmt::format("more than {} devices ({})", kMostDevices, what)};
  return d;
}

int devices(const ServerDegrees& d) {
  return d.workers * d.tp * d.dp * d.pp;
}

// Checkpoints with FP8 scales of blocks of 128 x 128; others have one a tensor.
bool has_block_scales(const Model& model) {
  return model.experts.routed > 0 || model.id == "qwen3-235b-a22b";
}

std::string precision_text(const char* gemm, const char* experts, const char* weights, const char* kv) {
  std::string text = fmt::format(R"("gemm": "{}", "kv": "{}")", gemm, kv);
  if (*experts != 0) text += fmt::format(R"(, "experts": "{}")", experts);
  if (*weights != 0) text += fmt::format(R"(, "expert_weights": "{}")", weights);
  return "{" + text + "}";
}

// gpt-oss is published with MXFP4 experts, everything else in BF16 (its model card): computed in BF16 on
// Hopper and in FP8 on Blackwell, which has such tensor cores. "int4_wo" is Kimi-K2.5, whose experts alone
// are INT4.
Formats formats_of(const ServerRow& row, const Model& model) {
  const bool blackwell = row.system.starts_with("b");
  const char* kv = keeps_fp8(row, model) ? "fp8" : "bf16";
  if (model.id.starts_with("gpt-oss")) return {precision_text("bf16", blackwell ? "fp8" : "bf16", "fp4", kv)};
  if (row.gemm == "int4_wo") {
    if (model.experts.routed == 0) throw LeftOut{"INT4 weights of dense layers have no table on these chips"};
    return {precision_text("bf16", "", "int4", kv)};
  }
  if (row.gemm == "nvfp4") {
    if (!blackwell) throw LeftOut{fmt::format("{} does not compute in FP4", row.system)};
    return {precision_text("fp4", "", "", kv)};
  }
  if (row.gemm.empty() && (row.precision.empty() || row.precision == "bf16"))
    return {precision_text("bf16", "", "", kv)};
  if (row.gemm == "fp8" || row.gemm == "fp8_block")
    return {precision_text("fp8", "", "", kv), row.gemm == "fp8" && !has_block_scales(model)};
  throw LeftOut{fmt::format("format \"{}\" is not known", row.gemm)};
}

std::string phase_text(const ServerDegrees& d, const char* pool, const ServerStart& start) {
  const std::string named = *pool == 0 ? "" : fmt::format(R"("pool": "{}", )", pool);
  const bool fused = start.fused_shared_experts && d.moe_ep == 1;
  // Replicas of attention gather each other's tokens for the columns that they have of every expert.
  const std::string columns = d.dp > 1 && d.moe_tp > 1 ? fmt::format(R"(, "tp": {})", d.moe_tp) : "";
  return fmt::format(R"({}"attention": {{"dp": {}, "tp": {}}}, {}"ep": {{"degree": {}{}{}}})", named,
                     d.workers * d.dp, d.tp, d.pp > 1 ? fmt::format(R"("pp": {}, )", d.pp) : "", d.moe_ep,
                     columns, fused ? R"(, "shared_experts": "fused")" : "");
}

std::string pool_text(const char* name, const std::string& accelerator, int devices) {
  return fmt::format(R"({{"name": "{}", "accelerator": "{}", "node": "hgx-8", "nodes": {}}})", name,
                     accelerator, (devices + kOfNode - 1) / kOfNode);
}

// Lengths of InferenceMAX are drawn evenly from 0.8 times the nominal one to all of it; ten times as many
// prompts as users, who ask again at once.
int shortest(const ServerRow& row, int tokens) {
  return is_inferencemax(row) ? std::max(1, static_cast<int>(tokens * 0.8)) : tokens;
}

std::string length_text(const ServerRow& row, int tokens) {
  const int least = shortest(row, tokens);
  return least == tokens ? std::to_string(tokens) : fmt::format(R"({{"uniform": [{}, {}]}})", least, tokens);
}

// Nobody publishes what experts were asked for. With Zipf's 0.6 placing them by load gains what SGLang
// measured of DeepSeek (scenarios/validate/README.md: 1.49 in prefill and 2.54 in decode), and no server here
// places them.
std::string workload_text(const ServerRow& row) {
  return fmt::format(
      R"({{"trace": {{"generator": "batch", "requests": {}, "input": {}, "output": {}}}, "users": {},)"
      R"( "experts": {{"popularity": {{"zipf": 0.6}}}}}})",
      10 * row.users, length_text(row, row.input), length_text(row, row.output), row.users);
}

// "": as the framework does.
std::string_view as_text(std::optional<bool> given) {
  return !given ? "" : *given ? "yes" : "no";
}

std::string backend_of(const ServerRow& row) {
  constexpr std::array kKnown{"vllm", "sglang", "trtllm"};
  if (std::find(kKnown.begin(), kKnown.end(), row.backend) == kKnown.end())
    throw LeftOut{fmt::format("backend \"{}\" is not known", row.backend)};
  return row.backend;
}

struct Layout {
  ServerDegrees prefill, decode;
  std::string pools, separation;
};

Layout layout_of(const ServerRow& row, const Model& model, const std::string& chip) {
  Layout layout;
  if (row.apart()) {
    layout.prefill = degrees_of(row.prefill, model, "how prefill is spread");
    layout.decode = degrees_of(row.decode, model, "how decode is spread");
    layout.pools = pool_text("prefill", chip, devices(layout.prefill)) + ", " +
                   pool_text("decode", chip, devices(layout.decode));
    // What users read is the answer of who decodes, first token included: SGLang's prebuilt batches
    // (disaggregation/decode.py), TensorRT-LLM's first_gen_tokens, vLLM's prefill with one token.
    layout.separation = R"("separation": {"prefill_decode": true, "first_token": "decode"}, )";
  } else {
    ServerDegrees given = row.both;
    if (given.moe_ep == 1 && keeps_whole_experts(row, model)) std::swap(given.moe_ep, given.moe_tp);
    layout.decode = degrees_of(given, model, "how the server is spread");
    if (devices(layout.decode) > kOfNode) throw LeftOut{"an aggregated server of more than one node"};
    layout.pools = pool_text("servers", chip, devices(layout.decode));
  }
  return layout;
}

// Sequences of a replica that decodes, when users are dealt evenly.
int batch_of(const ServerRow& row, const Layout& layout) {
  const int replicas = layout.decode.workers * layout.decode.dp;
  return std::max(
      {1, (row.users + replicas - 1) / replicas, row.apart() ? layout.decode.batch : row.both.batch});
}

std::string joined_members(const std::vector<std::string>& members) {
  std::string text;
  for (const std::string& member : members)
    if (!member.empty()) text += (text.empty() ? "" : ", ") + member;
  return text;
}

std::string member(const char* key, const std::string& value) {
  return value.empty() ? "" : fmt::format(R"("{}": {})", key, value);
}

std::string plan_text(const ServerRow& row, const Layout& layout, const Formats& formats,
                      const ServerStart& start) {
  const int most = std::max(row.users, batch_of(row, layout));  // one replica may get more than its share
  const int batch = start.max_batch > 0 ? std::min(start.max_batch, most) : most;
  const std::string budget = start.token_budget > 0 ? std::to_string(start.token_budget) : "";
  const std::string prefill = joined_members(
      {row.apart() ? phase_text(layout.prefill, "prefill", start) : "", member("token_budget", budget)});
  const std::string decode =
      joined_members({phase_text(layout.decode, row.apart() ? "decode" : "", start),
                      member("max_batch", std::to_string(batch)), member("speculative", start.speculative)});
  const std::string kernels = joined_members(
      {start.fused_reduction ? member("fused_reduction", *start.fused_reduction ? "true" : "false") : "",
       member("quantised_output", start.quantised_output ? "true" : ""),
       member("fused_quantise", formats.per_tensor ? "true" : "")});
  const std::string cache = start.memory_share > 0
                                ? fmt::format(R"("cache": {{"hbm": {{"share": {}}}}}, )", start.memory_share)
                                : "";
  return fmt::format(
      R"({{"framework": "{}", "steps": "surface", {}{}{}{}"decode": {{{}}}, "prefill": {{{}}}, "precision": {}}})",
      row.backend, layout.separation,
      start.scheduler.empty() ? "" : member("scheduler", start.scheduler) + ", ",
      kernels.empty() ? "" : kernels + ", ", cache, decode, prefill, formats.precision);
}

ServerScenario mapped(const ServerRow& row, const ModelCatalog& models) {
  if (!row.unreadable.empty()) throw LeftOut{row.unreadable};
  if (row.input <= 0 || row.output <= 1 || row.users <= 0)
    throw LeftOut{"lengths or concurrency are not told"};
  if (row.mode != "agg" && row.mode != "disagg")
    throw LeftOut{fmt::format("mode \"{}\" is not known", row.mode)};
  const Model model = model_of(row, models);
  const std::string chip = accelerator_of(row), backend = backend_of(row);
  const Layout layout = layout_of(row, model, chip);
  const Formats formats = formats_of(row, model);
  const int prompt_replicas = row.apart() ? layout.prefill.dp : layout.decode.dp;
  const ServerStart start = server_start(
      row, model, {layout.decode.dp, batch_of(row, layout), prompt_replicas, formats.per_tensor});
  const std::string cluster = fmt::format(
      R"({{"pools": [{}], "fabric": {{"type": "rail-optimised-clos", "nic": "400 Gb/s"}}, "collectives": "{}",)"
      R"( "kernels": "{}"}})",
      layout.pools, backend, start.kernels);
  const std::string plan = plan_text(row, layout, formats, start);
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "serving", "name": "row {}", "model": {}, "cluster": {}, "plan": {},)"
      R"( "workload": {}}})",
      row.line, json_string(row.model), cluster, plan, workload_text(row));
  return {
      parse_document(text, fmt::format("row {}", row.line)), "",
      fmt::format("{} {} {} {} {} {} {} {} {} {}", row.model, cluster, phase_text(layout.prefill, "", start),
                  phase_text(layout.decode, "", start), formats.precision, start.speculative, start.launches,
                  is_inferencemax(row), as_text(start.fused_reduction), start.quantised_output)};
}

}  // namespace

double mean_input(const ServerRow& row) {
  return (shortest(row, row.input) + row.input) / 2.0;
}

ServerScenario server_scenario(const ServerRow& row, const ModelCatalog& models) {
  try {
    return mapped(row, models);
  } catch (const LeftOut& why) {
    return {std::nullopt, shown_characters(why.reason)};  // cells of a table are of any bytes
  }
}

}  // namespace moebius
