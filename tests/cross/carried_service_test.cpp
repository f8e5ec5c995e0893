// What requests are answered does not depend on what the scheduler decides: the service is carried out on the
// host, with real numbers, by the decisions that a simulated one makes.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/cross/small_serving.h"

namespace moebius {
namespace {

struct Answered {
  Tokens tokens;
  std::vector<PoolFigures> pools;
  double moved = 0;  // bytes of caches
  std::int64_t iterations = 0;
};

Answered answered(const CarriedService& service) {
  Serving serving(service);
  Recorder recorder(serving.layout(), {.detail = Detail::kNone});
  HostExecutor<double> host(serving.layout(), recorder,
                            exact_options(service.workload.seed, &serving.prompts()));
  execute(serving, host, recorder);
  return {serving.generated(reader_of(host)), serving.system().pools(), serving.system().transferred_bytes(),
          serving.figures({}).iterations};
}

CarriedService small(AttentionKind attention = AttentionKind::kGqa) {
  return carried_alone(small_service(small_model(attention)));
}

Tokens expected(AttentionKind attention = AttentionKind::kGqa) {
  static std::map<AttentionKind, Tokens> known;
  Tokens& tokens = known[attention];
  if (tokens.empty()) tokens = answered(small(attention)).tokens;
  return tokens;
}

ReplicaRules& replica_of(CarriedService& service, int pool = 0) {
  return service.pools[pool].rules.instance.replica;
}

}  // namespace

TEST_CASE("answers are those of requests that are served one after the other") {
  CarriedService service = small();
  replica_of(service).max_running = 1;
  CHECK(answered(service).tokens == expected());
  std::set<std::int32_t> distinct;
  for (const auto& answer : expected()) distinct.insert(answer.begin(), answer.end());
  CHECK(distinct.size() > 4);  // one token for everything would pass every comparison
}

TEST_CASE("prompts in chunks beside decoding sequences change no answer") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    CarriedService service = small(attention);
    replica_of(service).chunked = true;
    replica_of(service).token_budget = 7;
    CHECK(answered(service).tokens == expected(attention));
    replica_of(service).policy = BatchPolicy::kMixed;
    CHECK(answered(service).tokens == expected(attention));
  }
}

// The longest request keeps 17 + 9 - 1 = 25 tokens: 7 pages of 4. Of 9 pages two long ones soon have no room.
TEST_CASE("sequences that are driven out and computed again answer as if they had stayed") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla})
    for (const BatchPolicy policy : {BatchPolicy::kPrefillFirst, BatchPolicy::kMixed}) {
      CarriedService service = small(attention);
      replica_of(service).pages = 9;
      replica_of(service).policy = policy;
      replica_of(service).chunked = true;
      replica_of(service).token_budget = 9;
      const Answered result = answered(service);
      CHECK(result.tokens == expected(attention));
      CHECK(result.pools[0].preemptions > 0);
    }
}

TEST_CASE("keys that waited in the host's memory are the keys that went there") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    CarriedService service = small(attention);
    replica_of(service).pages = 9;
    replica_of(service).host_pages = 20;
    const Answered result = answered(service);
    CHECK(result.tokens == expected(attention));
    CHECK(result.pools[0].swaps.sequences > 0);
    CHECK(result.pools[0].swaps.in_tokens == result.pools[0].swaps.out_tokens);
  }
}

TEST_CASE("prefill and decode apart answer as one pool does and move each prompt's keys once") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    const CarriedService service = in_two_pools(small(attention));
    const Answered result = answered(service);
    CHECK(result.tokens == expected(attention));
    double tokens = 0;  // of prompts that are decoded
    for (const TrafficRequest& request : service.requests)
      tokens += request.output_tokens > 1 ? static_cast<double>(request.input_tokens) : 0;
    CHECK(result.moved ==
          Approx(tokens * kv_elements_per_token(service.model) * element_bytes(service.pools[0].plan.kv)));
  }
}

TEST_CASE("prompts in parts answer as whole ones where layers attend in chunks") {
  Model model = small_model(AttentionKind::kGqa);
  model.attention_chunk = 8;  // two pages
  model.full_attention_every = 2;
  CarriedService service = carried_alone(small_service(model));
  const Tokens whole = answered(service).tokens;
  CHECK(whole != expected());
  replica_of(service).chunked = true;
  replica_of(service).token_budget = 7;
  replica_of(service).policy = BatchPolicy::kMixed;
  CHECK(answered(service).tokens == whole);
  CHECK(answered(in_two_pools(service)).tokens == whole);
}

// Delta networks: one at a time, in parts beside others, computed again, handed over, on two ranks.
TEST_CASE("what is kept of a sequence is its own, and goes with it") {
  const CarriedService service = carried_alone(small_service(small_delta_model()));
  const Tokens alone = answered(service).tokens;
  std::set<std::int32_t> distinct;
  for (const auto& answer : alone) distinct.insert(answer.begin(), answer.end());
  CHECK(distinct.size() > 4);
  CarriedService one_by_one = service;
  replica_of(one_by_one).max_running = 1;
  CHECK(answered(one_by_one).tokens == alone);
  CarriedService mixed = service;
  replica_of(mixed).chunked = true;
  replica_of(mixed).token_budget = 7;
  replica_of(mixed).policy = BatchPolicy::kMixed;
  CHECK(answered(mixed).tokens == alone);
  CarriedService crowded = service;
  replica_of(crowded).pages = 9;
  const Answered again = answered(crowded);
  CHECK(again.tokens == alone);
  CHECK(again.pools[0].preemptions > 0);
  const Answered apart = answered(in_two_pools(service));
  CHECK(apart.tokens == alone);
  double tokens = 0, sequences = 0;  // that are decoded
  for (const TrafficRequest& request : service.requests) {
    if (request.output_tokens == 1) continue;
    tokens += static_cast<double>(request.input_tokens);
    ++sequences;
  }
  CHECK(apart.moved == Approx(tokens * kv_elements_per_token(service.model) * element_bytes(DType::kBf16) +
                              sequences * state_bytes_per_sequence(service.model).value));
}

TEST_CASE("any number of prefill and decode instances give the same answers") {
  for (const auto& [prefill, decode] : {std::pair(2, 1), std::pair(1, 2), std::pair(2, 3)}) {
    CarriedService service = in_two_pools(small());
    service.pools[0].rules.instances = prefill;
    service.pools[1].rules.instances = decode;
    service.router = RouterPolicy::kLeastTokens;
    CHECK(answered(service).tokens == expected());
  }
}

TEST_CASE("a decode pool that shares experts takes requests from one whose ranks have them all") {
  CarriedService service = in_two_pools(small());
  service.pools[1].plan.dp = service.pools[1].plan.ep = 2;
  service.pools[1].rules.instance.replicas = 2;
  service.pools[1].rules.instance.balance = ReplicaBalance::kTokens;
  replica_of(service, 1).pages = 12;  // and has too little room for them
  CHECK(answered(service).tokens == expected());
}

// Odd numbers of rows are padded to what two ranks share. Whole keys travel between equal replicas.
TEST_CASE("replicas of two ranks each that share experts give the same answers, however they are scheduled") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    CarriedService service = small(attention);
    service.pools[0].plan.tp = service.pools[0].plan.dp = 2;
    service.pools[0].plan.ep = 4;
    service.pools[0].rules.instance.replicas = 2;
    const Tokens tokens = answered(service).tokens;
    const Answered apart = answered(in_two_pools(service));
    CHECK(apart.tokens == tokens);
    CHECK(apart.moved > 0);
    replica_of(service).chunked = true;
    replica_of(service).policy = BatchPolicy::kMixed;
    replica_of(service).token_budget = 7;
    CHECK(answered(service).tokens == tokens);
  }
}

// Replicas with fewer rows are padded to the longest, and those with nothing to do take part. Weights that
// are drawn depend on how they are cut: answers are compared among schedules.
TEST_CASE("replicas whose ranks share each expert by columns give the same answers, however scheduled") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    for (const int tp : {1, 2}) {
      INFO("attention " << static_cast<int>(attention) << " on tp " << tp);
      CarriedService service = small(attention);
      ServingPlan& plan = service.pools[0].plan;
      plan.tp = tp, plan.dp = 2, plan.expert_tp = 2 * tp;
      service.pools[0].rules.instance.replicas = 2;
      const Tokens tokens = answered(service).tokens;
      CHECK(answered(in_two_pools(service)).tokens == tokens);
      replica_of(service).max_running = 1;
      CHECK(answered(service).tokens == tokens);
      replica_of(service).max_running = 3;
      replica_of(service).chunked = true;
      replica_of(service).policy = BatchPolicy::kMixed;
      replica_of(service).token_budget = 7;
      CHECK(answered(service).tokens == tokens);
      service.workload.popularity = {};  // dealt over the rows of both, padding among them
      CHECK(answered(service).iterations > 0);
    }
  }
}

TEST_CASE("where replicas send a request by the tokens of others changes no answer") {
  for (const ReplicaBalance balance :
       {ReplicaBalance::kRoundRobin, ReplicaBalance::kRequests, ReplicaBalance::kTokens}) {
    CarriedService service = small();
    service.pools[0].plan.dp = service.pools[0].plan.ep = 2;
    service.pools[0].rules.instance.replicas = 2;
    service.pools[0].rules.instance.balance = balance;
    CHECK(answered(service).tokens == expected());
  }
}

// Turns of two sessions: blocks of 8 tokens, of which later turns begin with all of the earlier ones.
CarriedService sessions(bool shared) {
  CarriedService service = small();
  service.requests.clear();
  for (int turn = 0; turn < 4; ++turn) {
    for (std::uint64_t session = 0; session < 2; ++session) {
      TrafficRequest& request = service.requests.emplace_back();
      request.input_tokens = 8 * (turn + 1) + 3;
      request.output_tokens = 4;
      request.block_tokens = 8;
      request.arrival = Time{1'000'000'000} * turn;
      for (std::uint64_t block = 0; block <= static_cast<std::uint64_t>(turn); ++block)
        request.blocks.push_back(100 * session + block);
    }
  }
  service.workload.input = {1, 40};
  service.workload.output = {1, 4};
  service.workload.requests = 8;
  ReplicaRules& replica = replica_of(service);
  replica.pages = 100;
  replica.chunked = true;
  replica.shared_tokens = shared ? 8 : 0;
  return service;
}

TEST_CASE("prompts that begin alike answer the same from the cache as computed anew") {
  const Answered alone = answered(sessions(false)), shared = answered(sessions(true));
  CHECK(shared.tokens == alone.tokens);
  // Of turns 1, 2 and 3 of both sessions all blocks but the last: 8, 16 and 24 tokens.
  CHECK(shared.pools[0].prefixes.reused_tokens == 2 * (8 + 16 + 24));
  CHECK(alone.pools[0].prefixes.reused_tokens == 0);
}

TEST_CASE("blocks that had to go are computed again and answer the same") {
  CarriedService service = sessions(true);
  const Tokens alone = answered(sessions(false)).tokens;
  replica_of(service).pages = 12;  // of 4: one prompt of 35 and little else
  const Answered result = answered(service);
  CHECK(result.tokens == alone);
  CHECK(result.pools[0].prefixes.reused_tokens < 2 * (8 + 16 + 24));
}

TEST_CASE("users who ask again when answered and requests that come by and by are answered alike") {
  CarriedService service = small();
  service.users = 2;
  CHECK(answered(service).tokens == expected());
  service.users = 0;
  for (std::size_t i = 0; i < service.requests.size(); ++i)
    service.requests[i].arrival = Time{2'000'000} * static_cast<std::int64_t>(i);
  CHECK(answered(service).tokens == expected());
}

}  // namespace moebius
