// Experts move between the ranks of a service while it answers: their weights leave one rank's memory and are
// used from another's, and no answer changes.
#include <set>

#include "tests/cross/placed_service.h"

namespace moebius {
namespace {

struct PlacedAnswers {
  Tokens tokens;
  std::int64_t wrong_tables = 0, wrong_weights = 0, slots = 0;
  std::int64_t changed_slots = 0, remote_arrivals = 0;
  double sent_bytes = 0, done_bytes = 0;  // of experts, by the schedule; by the rebalances that were done
  std::int64_t rebalances = 0;
};

void add_rebalances(const Serving& serving, int pools, PlacedAnswers& result) {
  for (int pool = 0; pool < pools; ++pool) {
    const auto figures = serving.experts(pool);
    if (!figures) continue;
    for (const Rebalance& of : figures->rebalances) {
      ++result.rebalances;
      if (of.done.ns > 0) result.done_bytes += of.bytes;
    }
  }
}

PlacedAnswers answers_of_placed(const CarriedService& service) {
  Serving serving(service);
  Recorder recorder(serving.layout(), {.detail = Detail::kNone});
  const HostOptions options = exact_options(service.workload.seed, &serving.prompts());
  HostExecutor<double> host(serving.layout(), recorder, options);
  const bool placed = service.experts.policy != BalancePolicy::kNone;
  SlotLedger ledger(serving.layout());
  ObservedWorkload observed(serving, [&](const Submission& of) {
    if (placed) ledger.issued(of);
  });
  execute(observed, host, recorder);
  PlacedAnswers result;
  result.tokens = serving.generated(reader_of(host));
  ledger.commit();
  ledger.for_each_slot([&](int rank, const Tensor& weight, std::size_t slot, std::int32_t expert) {
    const std::vector<double> held = host.tensor(rank, weight.key),
                              is = weight_of(weight, expert, options.seed);
    const auto first = held.begin() + static_cast<std::ptrdiff_t>(slot * is.size());
    ++result.slots;
    result.wrong_weights += !std::equal(is.begin(), is.end(), first);
  });
  result.wrong_tables = ledger.wrong_tables();
  result.changed_slots = ledger.changed_slots();
  result.remote_arrivals = ledger.remote_arrivals();
  result.sent_bytes = ledger.sent_bytes();
  add_rebalances(serving, static_cast<int>(service.pools.size()), result);
  return result;
}

const Tokens& tokens_in_place() {
  static const Tokens tokens = answers_of_placed(placed_service({})).tokens;
  return tokens;
}

// Requests whose experts change with what is asked for: a third of them before, a third after, a third again.
CarriedService changing(const ExpertBalancePlan& experts) {
  CarriedService service = placed_service(experts);
  for (std::size_t i = 0; i < service.requests.size(); ++i)
    service.requests[i].arrival = Time{300'000} * static_cast<std::int64_t>(i);
  service.drift.domains = {{Time{1'600'000}, 1}, {Time{3'200'000}, 2}};
  return service;
}

void check_moved(const PlacedAnswers& result) {
  CHECK(result.rebalances > 1);
  CHECK(result.remote_arrivals > 0);
  CHECK(result.wrong_tables == 0);
  CHECK(result.slots > 0);
  CHECK(result.wrong_weights == 0);
  CHECK(result.sent_bytes == result.done_bytes);
}

}  // namespace

TEST_CASE("experts that stand in slots answer as those that stand by number") {
  std::set<std::int32_t> distinct;
  for (const auto& answer : tokens_in_place()) distinct.insert(answer.begin(), answer.end());
  CHECK(distinct.size() > 4);  // one token for everything would pass every comparison
  for (const TokenSplit split : {TokenSplit::kEven, TokenSplit::kLoad}) {
    ExpertBalancePlan plan = moving_experts(BalancePolicy::kStatic);
    plan.known_start = true;
    plan.split = split;
    const PlacedAnswers result = answers_of_placed(placed_service(plan));
    CHECK(result.tokens == tokens_in_place());
    CHECK(result.wrong_tables == 0);
    CHECK(result.wrong_weights == 0);
    CHECK(result.changed_slots == 0);
  }
}

TEST_CASE("experts that move while requests are answered change no answer, and stand where tables say") {
  for (const BalancePolicy policy : {BalancePolicy::kHierarchical, BalancePolicy::kGlobal}) {
    const PlacedAnswers result = answers_of_placed(placed_service(moving_experts(policy)));
    CHECK(result.tokens == tokens_in_place());
    check_moved(result);
  }
  ExpertBalancePlan layer_by_layer = moving_experts();
  layer_by_layer.slice = 1;
  layer_by_layer.split = TokenSplit::kLoad;
  const PlacedAnswers result = answers_of_placed(placed_service(layer_by_layer));
  CHECK(result.tokens == tokens_in_place());
  CHECK(result.remote_arrivals > 0);
  CHECK(result.wrong_tables + result.wrong_weights == 0);
}

TEST_CASE("experts that move on fewer ranks, with prefill and decode apart, and beside other balancing") {
  const PlacedAnswers two = answers_of_placed(placed_service(moving_experts(), 2));
  CHECK(two.tokens == tokens_in_place());
  check_moved(two);
  for (const ReplicaBalance balance : {ReplicaBalance::kRoundRobin, ReplicaBalance::kTokens}) {
    CarriedService service = in_two_pools(placed_service(moving_experts()));
    for (CarriedPool& pool : service.pools) pool.rules.instance.balance = balance;
    const PlacedAnswers apart = answers_of_placed(service);
    CHECK(apart.tokens == tokens_in_place());
    check_moved(apart);
  }
}

TEST_CASE("requests that ask for other experts as time goes on answer the same wherever those stand") {
  const Tokens tokens = answers_of_placed(changing({})).tokens;
  CHECK(tokens != tokens_in_place());
  ExpertBalancePlan once = moving_experts(BalancePolicy::kStatic);
  once.known_start = true;
  CHECK(answers_of_placed(changing(once)).tokens == tokens);
  const PlacedAnswers result = answers_of_placed(changing(moving_experts()));
  CHECK(result.tokens == tokens);
  check_moved(result);
  CHECK(answers_of_placed(in_two_pools(changing(moving_experts()))).tokens == tokens);
}

TEST_CASE("a rank needs memory for its further slots and for experts on their way") {
  const auto peak = [](const ExpertBalancePlan& plan) {
    return Serving(placed_service(plan)).memory({1e12}).peak().value;
  };
  ExpertBalancePlan fixed = moving_experts(BalancePolicy::kStatic);
  const double off = peak({}), placed = peak(fixed), moving = peak(moving_experts());
  const double expert = expert_bytes(full_model(), DType::kBf16);
  CHECK(placed - off >= 2 * expert);     // a slot more in each of two layers
  CHECK(moving - placed == 6 * expert);  // three slots of two layers
}

}  // namespace moebius
