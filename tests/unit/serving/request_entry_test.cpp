// When a replica sees the requests that have come, and when replicas that share experts begin prompts.
#include <catch2/catch.hpp>

#include "workloads/serving/system/instance.h"
#include "workloads/serving/system/replica.h"

namespace moebius {
namespace {

ReplicaRules rules_of() {
  ReplicaRules rules;
  rules.page_tokens = 4;
  rules.pages = 1000;
  rules.token_budget = 100;
  rules.policy = BatchPolicy::kMixed;
  return rules;
}

Sequence sequence(std::int32_t id) {
  return {.id = id, .prompt = 10, .output = 50, .chain = {}};
}

// Prompt tokens of the next iterations.
std::vector<std::int64_t> prompts_of(Replica& replica, int iterations) {
  std::vector<std::int64_t> tokens;
  StepOutcome outcome;
  for (int i = 0; i < iterations; ++i) {
    tokens.push_back(replica.plan().prefill_tokens);
    replica.complete({}, outcome);
  }
  return tokens;
}

// A millisecond an iteration, whatever is in it.
class EvenCost : public StepCost {
 public:
  double seconds(std::span<const StepShape>) override { return 1e-3; }
  double forecast(std::span<const StepShape>) override { return 1e-3; }
};

std::vector<std::int64_t> prompts_of(Instance& instance, int iterations) {
  std::vector<std::int64_t> tokens;
  StepOutcome outcome;
  for (int i = 0; i < iterations; ++i) {
    instance.begin(instance.until());
    std::int64_t sum = 0;
    for (const StepShape& shape : instance.shapes()) sum += shape.prefill_tokens;
    tokens.push_back(sum);
    instance.end(instance.until(), outcome);
  }
  return tokens;
}

using Tokens = std::vector<std::int64_t>;

InstanceRules pair_of(std::int32_t await, std::int32_t gather) {
  InstanceRules rules;
  rules.replica = rules_of();
  rules.replicas = 2;
  rules.await_prompts = await;
  rules.gather_prompts = gather;
  return rules;
}

}  // namespace

// The iteration with the first prompt is followed by a look (there were prompts in it), then by one after
// every three without.
TEST_CASE("a loop that looks for requests every third iteration leaves them waiting until then") {
  ReplicaRules rules = rules_of();
  rules.receive_every = 3;
  Replica replica(rules);
  replica.enqueue(sequence(0));
  CHECK(prompts_of(replica, 2) == Tokens{10, 0});
  replica.enqueue(sequence(1));
  CHECK(prompts_of(replica, 4) == Tokens{0, 0, 10, 0});
}

TEST_CASE("an idle loop sees a request at once, however seldom it looks") {
  ReplicaRules rules = rules_of();
  rules.receive_every = 1000;
  rules.decided_ahead = true;
  Replica replica(rules);
  replica.enqueue(sequence(0));
  CHECK(prompts_of(replica, 1) == Tokens{10});
}

// Decided when the one before begins: plan() of an iteration may take what was there at the plan() before.
TEST_CASE("what comes while an iteration goes on is in the one after the next where decisions are ahead") {
  for (const bool ahead : {false, true}) {
    ReplicaRules rules = rules_of();
    rules.decided_ahead = ahead;
    Replica replica(rules);
    replica.enqueue(sequence(0));
    CHECK(prompts_of(replica, 2) == Tokens{10, 0});
    replica.enqueue(sequence(1));
    CHECK(prompts_of(replica, 3) == (ahead ? Tokens{0, 10, 0} : Tokens{10, 0, 0}));
  }
}

// Half of a budget of 100: four prompts of 10 and a sequence are 41 rows, five are 51.
TEST_CASE("prompts gather until they fill the share of the budget, or for so many iterations") {
  ReplicaRules rules = rules_of();
  rules.gather_share = 0.5;
  rules.gather_iterations = 2;
  Replica replica(rules);
  replica.enqueue(sequence(0));
  CHECK(prompts_of(replica, 1) == Tokens{10});  // nothing decodes: no reason to wait
  for (int id = 1; id <= 4; ++id) replica.enqueue(sequence(id));
  CHECK(prompts_of(replica, 3) == Tokens{0, 0, 40});
  for (int id = 5; id <= 9; ++id) replica.enqueue(sequence(id));
  CHECK(prompts_of(replica, 1) == Tokens{50});
}

TEST_CASE("replicas that share experts begin prompts together, or after so many iterations") {
  EvenCost cost;
  Instance instance(pair_of(3, 0), &cost);
  for (int i = 0; i < 2; ++i) instance.replica(i).enqueue(sequence(i));
  CHECK(prompts_of(instance, 2) == Tokens{20, 0});
  instance.replica(0).enqueue(sequence(2));
  CHECK(prompts_of(instance, 3) == Tokens{0, 10, 0});  // the iteration without any counted, too
  instance.replica(0).enqueue(sequence(3));
  instance.replica(1).enqueue(sequence(4));
  CHECK(prompts_of(instance, 1) == Tokens{20});
}

TEST_CASE("replicas that all have prompts gather more of them while all decode") {
  EvenCost cost;
  Instance instance(pair_of(9, 2), &cost);
  for (int i = 0; i < 2; ++i) instance.replica(i).enqueue(sequence(i));
  CHECK(prompts_of(instance, 1) == Tokens{20});  // nobody decodes
  for (int i = 0; i < 2; ++i) instance.replica(i).enqueue(sequence(2 + i));
  CHECK(prompts_of(instance, 3) == Tokens{0, 0, 20});
}

// Half a millisecond of the loop before one of the device. What goes on was prepared beside the iteration
// before; a request that comes as the last token of all others does was not there then.
TEST_CASE("a loop that works ahead begins with a request when it comes") {
  EvenCost cost;
  InstanceRules rules;
  rules.replica = rules_of();
  rules.host.overlapped = true;
  rules.host.per_iteration = Time{500'000};
  for (const int output : {1, 2}) {
    Instance instance(rules, &cost);
    StepOutcome outcome;
    instance.replica(0).enqueue({.id = 0, .prompt = 10, .output = output, .chain = {}});
    const Time first = *instance.begin({});
    CHECK(first == Time{1'500'000});
    instance.end(first, outcome);
    instance.replica(0).enqueue({.id = 1, .prompt = 10, .output = 1, .chain = {}});
    CHECK(*instance.begin(first) - first == Time{output == 1 ? 1'500'000 : 1'000'000});
  }
}

TEST_CASE("who is urgent and not seen yet takes nobody's place who is") {
  ReplicaRules rules = rules_of();
  rules.decided_ahead = true;
  Replica replica(rules);
  StepOutcome outcome;
  replica.enqueue(sequence(0));
  replica.plan();
  replica.complete({}, outcome);
  replica.enqueue(sequence(1));
  replica.plan();
  Sequence urgent = sequence(2);
  urgent.priority = 1;
  replica.enqueue(urgent);
  replica.complete({}, outcome);
  replica.plan();
  CHECK(replica.admitted() == std::vector<std::int32_t>{1});
}

}  // namespace moebius
