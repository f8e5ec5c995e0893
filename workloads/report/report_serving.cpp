#include "workloads/report/report_serving.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "workloads/report/number_text.h"
#include "workloads/report/report_cache.h"
#include "workloads/report/report_course.h"
#include "workloads/report/report_engine.h"
#include "workloads/report/report_experts.h"
#include "workloads/report/report_phase.h"
#include "workloads/report/report_separation.h"
#include "workloads/report/report_service_classes.h"
#include "workloads/report/report_stages.h"
#include "workloads/report/spread_tree.h"
#include "workloads/report/step_price.h"
#include "workloads/serving/serving.h"

namespace moebius {
namespace {

using Out = std::back_insert_iterator<std::string>;

double imbalance(const PoolFigures& run) {
  return run.totals.rows > 0 ? run.totals.slowest_rows / run.totals.rows : 1;
}

// Blocks of the engine's cache are pages of its own; those of prompts are as the traffic hashes them.
FigureTree pool_tree(const ServicePoolFigures& pool, const BlockTokens& tokens) {
  return {{{"devices", std::int64_t{pool.devices}},
           {"instances", std::int64_t{pool.instances}},
           {"replicas", std::int64_t{pool.replicas}},
           {"iterations", pool.run.totals.iterations},
           {"timed_iterations", pool.timed_iterations},
           {"busy", pool.run.busy},
           {"rows_of_fullest_over_mean", imbalance(pool.run)},
           {"blocks", pool.pages},
           {"peak_blocks", pool.run.peak_pages},
           {"block_tokens", tokens.of_page},
           {"preemptions", pool.run.preemptions},
           {"wan_in_bytes", pool.run.wan.in_bytes},
           {"wan_out_bytes", pool.run.wan.out_bytes},
           {"wan_cache_bytes", pool.run.wan.cache_bytes}},
          {{"prefix",
            {{{"prompt_tokens", pool.run.prefixes.prompt_tokens},
              {"reused_tokens", pool.run.prefixes.reused_tokens},
              {"asked_blocks", pool.run.prefixes.asked_blocks},
              {"hit_blocks", pool.run.prefixes.hit_blocks},
              {"block_tokens", tokens.of_prompt}}}},
           {"surface_error",
            {{{"iterations", pool.surface.iterations},
              {"p50", pool.surface.p50},
              {"p90", pool.surface.p90},
              {"max", pool.surface.worst}}}}}};
}

void add_service(FigureTree& tree, const Report& report) {
  const ServiceFigures& service = *report.service;
  const ServicePlan& plan = report.scenario->service;
  tree.rows.emplace_back("transferred_bytes", service.transferred_bytes);
  if (service.intake.ns > 0) tree.rows.emplace_back("intake_s", service.intake.seconds());
  const TimeShares& shares = service.shares;
  tree.parts.emplace_back("request_time_s", FigureTree{{{"encode", shares.encode},
                                                        {"queue", shares.queue},
                                                        {"prefill", shares.prefill},
                                                        {"handover", shares.handover},
                                                        {"decode", shares.decode},
                                                        {"network", shares.network},
                                                        {"reception", shares.reception}}});
  FigureTree pools;
  for (const ServicePoolFigures& pool : service.pools) {
    FigureTree& parts =
        pools.parts
            .emplace_back(pool.run.name, with_engine(pool_tree(pool, block_tokens_of(report)), pool, plan))
            .second;
    parts.parts.emplace_back("stalls", stalls_tree(pool));
    if (pool.separation) parts.parts.emplace_back("separation", separation_tree(*pool.separation));
    if (pool.pipeline) parts.parts.emplace_back("pipeline", stages_tree(pool, service.span));
  }
  tree.parts.emplace_back("pools", std::move(pools));
  if (service.encoder) tree.parts.emplace_back("encoder", encoder_tree(*service.encoder));
  if (!service.series.moments.empty()) tree.parts.emplace_back("series", series_tree(service));
  add_classes(tree, service, plan.does);
  add_cost(tree, service, plan.does);
}

void spread_line(Out out, std::string_view name, const Spread& spread) {
  if (spread.none) return;
  fmt::format_to(out, "  {:<18} {:>10} {:>10} {:>10} {:>10} {:>10}\n", name, seconds_text(spread.mean),
                 seconds_text(spread.p50), seconds_text(spread.p90), seconds_text(spread.p95),
                 seconds_text(spread.p99));
}

std::string exchange_text(const ServingPlan& plan) {
  if (!plan.shares_by(ExpertSharing::kDispatch)) return "";
  return fmt::format(" (dispatch: {} in prefill, {} in decode)", dispatch_name(plan.prefill_exchange),
                     dispatch_name(plan.decode_exchange));
}

std::string format_text(DType arithmetic, DType weights) {
  const std::string text{to_string(arithmetic)};
  return weights == arithmetic ? text : fmt::format("{} with {} weights", text, to_string(weights));
}

// "bf16, experts bf16 with fp4 weights, cache bf16".
std::string formats_text(const Model& model, const ServingPlan& plan) {
  const DType experts = plan.expert_gemm.value_or(plan.gemm);
  const std::string dense = format_text(plan.gemm, plan.weights.value_or(plan.gemm)),
                    of_experts = format_text(experts, plan.expert_weights.value_or(experts));
  const bool differ = model.experts.routed > 0 && of_experts != dense;
  return fmt::format("{}{}{}, cache {}", dense, differ ? ", experts " + of_experts : "",
                     plan.attention == DType::kFp8 ? ", attention fp8" : "", to_string(plan.kv));
}

void plan_line(Out out, const Report& report) {
  const ServingPlan& plan = report.scenario->serving;
  fmt::format_to(out, "{} on {} {}, attention dp {} x tp {} · {}{}, {}\n\n", report.scenario->model.id,
                 grouped(plan.ranks()), report.scenario->cluster->pools.front().accelerator.id, plan.dp,
                 plan.tp, expert_degrees(plan), exchange_text(plan),
                 formats_text(report.scenario->model, plan));
}

std::string_view role_text(PoolRole role) {
  switch (role) {
    case PoolRole::kBoth:
      return "prefill and decode";
    case PoolRole::kPrefill:
      return "prefill";
    case PoolRole::kDecode:
      return "decode";
  }
  return "";
}

// A line a phase: "decode on 64 h100-sxm: 1 instance of dp 64 x tp 1 · ep 64".
void phase_lines(Out out, const Report& report) {
  fmt::format_to(out, "{}, {}\n", report.scenario->model.id,
                 formats_text(report.scenario->model, report.scenario->serving));
  for (const ServicePhase& phase : report.scenario->service.phases) {
    const Pool& pool = report.scenario->cluster->pools[phase.pool];
    if (phase.plan.experts_apart()) {
      fmt::format_to(out, "{} on {} {}: {}\n", role_text(phase.role), grouped(phase.plan.dp),
                     pool.accelerator.id, separation_plan_text(phase, *report.scenario->cluster));
      continue;
    }
    const std::string cut = phase.plan.cp > 1 ? fmt::format(" x cp {}", phase.plan.cp) : "",
                      stages = phase.plan.pp > 1 ? fmt::format("pp {} x ", phase.plan.pp) : "";
    fmt::format_to(out, "{} on {} {}: {} instance{} of {}dp {}{} x tp {} · {}\n", role_text(phase.role),
                   grouped(phase.instances * phase.plan.devices()), pool.accelerator.id,
                   grouped(phase.instances), phase.instances == 1 ? "" : "s", stages, phase.plan.replicas(),
                   cut, phase.plan.tp, expert_degrees(phase.plan));
  }
  fmt::format_to(out, "\n");
}

// Of one phase alone the other's figures do not exist: prompts that nobody computed, gaps after a token that
// was the last.
PoolRole role_of(const Report& report) {
  return report.service ? report.scenario->service.does : PoolRole::kBoth;
}

bool computes_prompts(const Report& report) {
  return role_of(report) != PoolRole::kDecode;
}

bool answers_prompts(const Report& report) {
  return role_of(report) != PoolRole::kPrefill;
}

void add_spread(FigureTree& tree, const char* key, const Spread& spread, bool exists) {
  FigureTree of = spread_tree(spread);
  for (auto& [of_spread, figure] : of.rows)
    if (!exists) figure = nullptr;
  tree.parts.emplace_back(key, of);
}

// Of no promises none is kept, and none is broken.
void add_goodput(FigureTree& tree, const Report& report) {
  if (!report.scenario->goal.given()) {
    tree.rows.emplace_back("goodput_rps", nullptr);
    tree.rows.emplace_back("slo_attainment", nullptr);
    return;
  }
  tree.rows.emplace_back("goodput_rps", report.serving->goodput_rps);
  tree.rows.emplace_back("slo_attainment", report.serving->slo_attainment);
}

std::string who_meets(const Report& report) {
  if (!report.service) return "meet the goal";
  const std::vector<ServiceClassFigures>& classes = report.service->classes;
  const bool all = std::all_of(classes.begin(), classes.end(),
                               [](const ServiceClassFigures& of) { return of.goal.given(); });
  return all ? "meet the goal" : "of those promised something meet the goal";
}

void rejected_lines(Out out, const ServiceFigures& service) {
  if (service.rejected > service.turned_away)
    fmt::format_to(out, "  rejected           {}: longer than the cache of a replica\n",
                   grouped(service.rejected - service.turned_away));
  if (service.turned_away > 0)
    fmt::format_to(out, "  turned away        {} by admission when they came\n",
                   grouped(service.turned_away));
}

void service_lines(Out out, const ServiceFigures& service, const BlockTokens& tokens) {
  const TimeShares& shares = service.shares;
  const double all = shares.encode + shares.queue + shares.prefill + shares.handover + shares.decode +
                     shares.network + shares.reception;
  const auto share = [&](double part) { return all > 0 ? 100 * part / all : 0; };
  fmt::format_to(out,
                 "  of their time      queue {:.1f}%, prefill {:.1f}%, handover {:.1f}%, decode {:.1f}%\n",
                 share(shares.queue), share(shares.prefill), share(shares.handover), share(shares.decode));
  if (service.encoder) fmt::format_to(out, "{}", encoder_text(*service.encoder, share(shares.encode)));
  if (shares.network > 0)
    fmt::format_to(out, "  on links to pools  {:.1f}% of their time\n", share(shares.network));
  if (shares.reception > 0)
    fmt::format_to(out, "  received by host   {:.1f}% of their time\n", share(shares.reception));
  rejected_lines(out, service);
  if (service.transferred_bytes > 0)
    fmt::format_to(out, "  handed over        {}\n", to_text(Bytes{service.transferred_bytes}));
  fmt::format_to(out, "\n  {:<14} {:>8} {:>9} {:>12} {:>8} {:>10} {:>18} {:>11}\n", "pool", "devices",
                 "instances", "iterations", "busy", "imbalance", "cache blocks", "preemptions");
  for (const ServicePoolFigures& pool : service.pools)
    fmt::format_to(out, "  {:<14} {:>8} {:>9} {:>12} {:>7.1f}% {:>10.3f} {:>18} {:>11}\n", pool.run.name,
                   pool.devices, pool.instances, grouped(pool.run.totals.iterations), 100 * pool.run.busy,
                   imbalance(pool.run),
                   fmt::format("{} of {}", grouped(pool.run.peak_pages), grouped(pool.pages)),
                   grouped(pool.run.preemptions));
  fmt::format_to(out, "  a cache block holds {} tokens\n", grouped(tokens.of_page));
  for (const ServicePoolFigures& pool : service.pools) {
    const PrefixTotals& prefixes = pool.run.prefixes;
    if (prefixes.asked_blocks > 0)
      fmt::format_to(out, "  {}: {} of {} prompt tokens were in the cache ({:.1f}%)\n", pool.run.name,
                     grouped(prefixes.reused_tokens), grouped(prefixes.prompt_tokens),
                     100.0 * static_cast<double>(prefixes.reused_tokens) /
                         static_cast<double>(std::max<std::int64_t>(1, prefixes.prompt_tokens)));
  }
  for (const ServicePoolFigures& pool : service.pools)
    if (pool.separation) fmt::format_to(out, "{}", separation_text(pool.run.name, *pool.separation));
  for (const ServicePoolFigures& pool : service.pools)
    if (pool.pipeline) fmt::format_to(out, "{}", stages_text(pool, service.span));
  for (const ServicePoolFigures& pool : service.pools) {
    if (pool.timed_iterations == pool.run.totals.iterations && pool.surface.iterations == 0) {
      fmt::format_to(out, "  {}: every iteration was carried out op by op\n", pool.run.name);
      continue;
    }
    fmt::format_to(
        out,
        "  {}: {} iterations timed op by op, the others between them; of {} measured again, half are "
        "within {:.1f}%, nine of ten within {:.1f}%\n",
        pool.run.name, grouped(pool.timed_iterations), pool.surface.iterations, 100 * pool.surface.p50,
        100 * pool.surface.p90);
  }
}

}  // namespace

BlockTokens block_tokens_of(const Report& report) {
  const std::int64_t page = report.scenario->serving.block_tokens;
  const std::optional<TrafficSource>& source = report.scenario->traffic.source;
  return {page, source ? source->block_tokens() : page};
}

FigureTree serving_tree(const Report& report) {
  const ServingFigures& figures = *report.serving;
  FigureTree tree;
  const std::int64_t rejected = report.service ? report.service->rejected : 0;
  tree.rows = {{"run_time_s", report.metrics.makespan.seconds()},
               {"output_tokens_per_s", figures.output_tokens_per_s},
               {"devices", report.devices()},
               {"iterations", figures.iterations},
               {"prefill_iterations", figures.prefills}};
  const bool prompts = computes_prompts(report), answers = answers_prompts(report);
  tree.rows.emplace_back("input_tokens_per_s", figure_if(prompts, figures.input_tokens_per_s));
  add_phase_rows(tree, report);
  add_goodput(tree, report);
  tree.parts = {
      {"requests",
       {{{"submitted", figures.submitted}, {"completed", figures.completed}, {"rejected", rejected}}}}};
  add_spread(tree, "ttft_s", figures.ttft, prompts);
  add_spread(tree, "tpot_s", figures.tpot, answers);
  add_spread(tree, "itl_s", figures.itl, answers);
  add_spread(tree, "e2e_s", figures.e2e, true);
  if (report.scenario->goal.given()) tree.parts.emplace_back("sla", goal_tree(report.scenario->goal));
  tree.parts.emplace_back(
      "kv", FigureTree{{{"total_blocks", std::int64_t{figures.cache_pages}},
                        {"peak_blocks", std::int64_t{figures.peak_pages}},
                        {"block_tokens", std::int64_t{report.scenario->serving.block_tokens}}}});
  if (report.service)
    add_blocks(tree.parts.back().second, *report.service, block_tokens_of(report).of_prompt);
  if (report.service) {
    add_service(tree, report);
  } else {
    tree.parts.emplace_back("cost", batch_cost_tree(report));
  }
  FigureTree experts = report.service ? experts_tree(*report.service) : FigureTree{};
  if (experts.parts.empty())
    tree.rows.emplace_back("eplb", nullptr);  // nothing places experts by load
  else
    tree.parts.emplace_back("eplb", std::move(experts));
  return tree;
}

namespace {

// What was computed, and by whom; of a simulation nothing.
std::string executed_text(const Report& report) {
  std::string text;
  const auto out = std::back_inserter(text);
  if (!report.facts.tokens.empty())
    fmt::format_to(out, "  tokens             hash {:016x}\n", hash_of(report.facts.tokens));
  if (!report.facts.on_cluster)
    fmt::format_to(out, "  executed by        {}: its times say nothing about the scenario's devices\n",
                   report.facts.executor);
  return text;
}

}  // namespace

std::string serving_text(const Report& report) {
  const ServingFigures& figures = *report.serving;
  const ServingPlan& plan = report.scenario->serving;
  std::string text;
  const Out out = std::back_inserter(text);
  report.service ? phase_lines(out, report) : plan_line(out, report);
  if (report.service && figures.completed == 0) {  // no rate, latency or cost says anything
    fmt::format_to(out, "  requests           no request was served, of {}\n", grouped(figures.submitted));
    rejected_lines(out, *report.service);
    return text;
  }
  fmt::format_to(
      out, "  requests           {} of {} completed in {}, {} iterations, {} of them with prompts\n",
      grouped(figures.completed), grouped(figures.submitted), seconds_text(report.metrics.makespan.seconds()),
      grouped(figures.iterations), grouped(figures.prefills));
  const bool prompts = computes_prompts(report), answers = answers_prompts(report);
  fmt::format_to(out, "  output tokens/s    {} ({} a device){}\n", rate_text(figures.output_tokens_per_s),
                 rate_text(figures.output_tokens_per_s / static_cast<double>(report.devices())),
                 prompts ? ", input " + rate_text(figures.input_tokens_per_s) : "");
  text += phase_text(report);
  fmt::format_to(out, "  {:<18} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "", "mean", "p50", "p90", "p95",
                 "p99");
  if (prompts) spread_line(out, "TTFT", figures.ttft);
  if (answers) spread_line(out, "TPOT", figures.tpot);
  if (answers) spread_line(out, "ITL", figures.itl);
  spread_line(out, "end to end", figures.e2e);
  if (report.scenario->goal.given())
    fmt::format_to(out, "  goodput            {:.4g} requests/s, {:.1f}% {}\n", figures.goodput_rps,
                   100 * figures.slo_attainment, who_meets(report));
  if (report.service) {
    service_lines(out, *report.service, block_tokens_of(report));
    engine_lines(out, *report.service, report.scenario->service);
    if (report.service->tiers) text += tiers_text(*report.service->tiers, block_tokens_of(report).of_prompt);
    text += executed_text(report);
    return text + stalls_text(*report.service) + experts_text(*report.service) +
           classes_text(*report.service, role_of(report)) + cost_text(*report.service, role_of(report));
  }
  fmt::format_to(
      out,
      "  cache              {} of {} pages of {} tokens at most in use on one rank; there are as many "
      "as requests can ask for\n",
      grouped(figures.peak_pages), grouped(figures.cache_pages), plan.block_tokens);
  return text + batch_cost_text(report) + executed_text(report);
}

}  // namespace moebius
