#include "workloads/scenario/expert_balance_keys.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "workloads/scenario/popularity_keys.h"
#include "workloads/scenario/scenario_parts.h"
#include "workloads/scenario/shared_expert_keys.h"

namespace moebius {
namespace {

constexpr std::array kBalancePolicies{
    Named<BalancePolicy>{"none", BalancePolicy::kNone, "experts stand once, in their own order"},
    Named<BalancePolicy>{"static", BalancePolicy::kStatic,
                         "placed once, by the popularity at the beginning: as \"hierarchical\" does"},
    Named<BalancePolicy>{
        "hierarchical", BalancePolicy::kHierarchical,
        "placed again and again; groups of experts stay on a node, where they divide over nodes"},
    Named<BalancePolicy>{"global", BalancePolicy::kGlobal, "placed again and again, on any rank"},
    Named<BalancePolicy>{"greedy", BalancePolicy::kGreedy,
                         "slots change while that saves more time than moving weights takes"},
};
constexpr std::array kSplits{
    Named<TokenSplit>{"even", TokenSplit::kEven, "equally"},
    Named<TokenSplit>{"load", TokenSplit::kLoad,
                      "so that ranks are loaded as equally as the placement lets them"},
};
constexpr double kMostRedundant = 1 << 16, kMostDomains = 1 << 20;

void read_domains(Section& section, ExpertDrift& drift) {
  for (Section& row :
       section.objects("domains", false, "changes of what is asked for, in the order of time")) {
    ExpertDrift::Domain domain;
    domain.at = row.time("at", std::nullopt, "when it changes");
    domain.number =
        static_cast<int>(row.integer("domain", {0, kMostDomains}, std::nullopt,
                                     "which one: equal numbers have equal popularity; 0: that of the "
                                     "beginning"));
    if (!drift.domains.empty() && domain.at <= drift.domains.back().at)
      row.place_of("at").fail(fmt::format("expected later than {}, found {}",
                                          to_text(drift.domains.back().at), to_text(domain.at)));
    row.finish();
    drift.domains.push_back(domain);
  }
}

}  // namespace

void read_expert_balance(Section section, ExpertBalancePlan& plan) {
  plan.policy =
      section.choice<BalancePolicy>("policy", kBalancePolicies, BalancePolicy::kNone, "where experts stand");
  plan.redundant = static_cast<int>(
      section.integer("redundant", {0, kMostRedundant}, 0,
                      "slots of a layer beyond one an expert; rounded up to as many slots on every rank"));
  plan.every = section.time("every", Time{std::int64_t{600} * 1'000'000'000}, "experts are placed anew");
  plan.window = section.time("window", plan.every, "of the last tokens, whose load counts");
  plan.split = section.choice<TokenSplit>("split", kSplits, TokenSplit::kEven,
                                          "how the tokens of an expert divide over its replicas");
  plan.slice = static_cast<int>(
      section.integer("slice", {1, 1 << 12}, 1, "layers whose weights move beside one iteration"));
  plan.known_start =
      section.boolean("known_start", true,
                      "the first placement knows the popularity at the beginning; otherwise slots "
                      "beyond one an expert hold experts 0, 1, 2, ...");
  const char* with = "a policy other than \"none\"";
  const bool placed = plan.policy != BalancePolicy::kNone;
  for (const char* key : {"redundant", "split"}) section.allow_only(key, placed, with);
  with = "a policy that places again and again";
  for (const char* key : {"every", "window", "slice", "known_start"})
    section.allow_only(key, plan.loops(), with);
  for (const char* key : {"every", "window"})
    if ((key[0] == 'e' ? plan.every : plan.window).ns == 0)
      section.place_of(key).fail("expected more than 0 s, found 0 s");
  section.finish();
}

void read_expert_traffic(Section section, Popularity& popularity, ExpertDrift& drift) {
  popularity = read_popularity_form(section);
  drift.correlation =
      section.time("drift", Time{},
                   "in which popularity turns over: correlation time of each expert's place among "
                   "those of its layer; 0: it stays");
  drift.recorded_step =
      section.time("step", Time{}, "how long each step of recorded counts lasts; 0: the first stays");
  read_domains(section, drift);
  const bool drawn =
      popularity.kind == PopularityKind::kZipf || popularity.kind == PopularityKind::kDirichlet;
  for (const char* key : {"drift", "domains"})
    section.allow_only(key, drawn, "popularity \"zipf\" or \"dirichlet\"");
  section.allow_only("step", popularity.kind == PopularityKind::kRecorded, "popularity \"recorded\"");
  constexpr std::int64_t kLeast = 60'000'000'000;
  if (drift.correlation.ns > 0 && drift.correlation.ns < kLeast)
    section.place_of("drift").fail(fmt::format("expected 0 or at least {}, found {}", to_text(Time{kLeast}),
                                               to_text(drift.correlation)));
  section.finish();
}

void set_expert_slots(Scenario& scenario, const Document& document) {
  const ExpertBalancePlan& plan = scenario.service.experts;
  const ExpertDrift& drift = scenario.traffic.drift;
  const auto fail = [&](const std::string& pointer, const std::string& sentence) {
    place_at(document, pointer).fail(sentence);
  };
  // Requests that are all there at once, every op carried out.
  const bool batch = scenario.service.full_steps && scenario.service.phases.empty();
  if (batch && drift.changes())
    fail("/workload/experts",
         "popularity that changes with time counts for requests that are there at once only with steps "
         "\"surface\"");
  for (ServicePhase& phase : scenario.service.phases) set_slots(phase.plan, scenario.model.experts, plan);
  if (plan.policy == BalancePolicy::kNone) return;
  if (batch)
    fail(
        "/plan/expert_balance/policy",
        "experts of requests that are there at once are placed only where steps are \"surface\", found steps "
        "\"full\"; expected \"none\"");
  if (scenario.model.experts.routed == 0)
    fail("/plan/expert_balance/policy",
         fmt::format("{} has no experts to place; expected \"none\"", scenario.model.id));
  const std::vector<ServicePhase>& phases = scenario.service.phases;
  const auto apart = [](const ServicePhase& of) { return of.expert_pool >= 0; };
  if (plan.loops() && std::any_of(phases.begin(), phases.end(), apart))
    fail("/plan/expert_balance/policy",
         "experts on a pool of their own are not placed anew so far: expected \"none\" or \"static\"");
  if (std::all_of(phases.begin(), phases.end(), [](const ServicePhase& of) { return of.plan.ep == 1; }))
    fail("/plan/expert_balance/policy",
         "experts that all stand on one rank cannot be placed: expected an expert-parallel degree above 1 in "
         "one phase, or policy \"none\"");
}

}  // namespace moebius
