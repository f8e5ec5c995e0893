// Caches on their way from prefill to decode, against closed forms: what leaves while prompts are computed,
// how many bytes there are, and who has the room that becomes free.
#include <algorithm>
#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/laws/row_cost.h"

namespace moebius {
namespace {

using namespace literals;

struct Lengths {
  int input = 0, output = 0;
};

// All at once.
class GivenRequests : public TrafficStream {
 public:
  explicit GivenRequests(std::vector<Lengths> lengths) : lengths_(std::move(lengths)) {}
  bool next(TrafficRequest& request) override {
    if (next_ == lengths_.size()) return false;
    request = {};
    request.input_tokens = lengths_[next_].input;
    request.output_tokens = lengths_[next_++].output;
    return true;
  }

 private:
  std::vector<Lengths> lengths_;
  std::size_t next_ = 0;
};

class Moments : public ServiceObserver {
 public:
  void iteration(std::int32_t, Time, Time, bool, bool, std::int64_t) override {}
  void finished(const RequestMoments& request) override { requests.push_back(request); }
  Time due() const override { return kForever; }
  void sample(Time, const std::vector<PoolMoment>&) override {}
  std::vector<RequestMoments> requests;
};

// A byte a nanosecond, ten layers.
SystemRules apart(StepCost& cost, double bytes_per_token, bool layerwise = true) {
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kPrefill, cost), paged_pool(PoolRole::kDecode, cost)};
  rules.transfer = {
      .bytes_per_token = bytes_per_token, .rate = {1e9}, .latency = {}, .layers = 10, .layerwise = layerwise};
  return rules;
}

// How long each cache was on its way after its prompt was computed, ascending.
std::vector<Time> ways_of(SystemRules rules, std::vector<Lengths> lengths) {
  Moments moments;
  rules.observer = &moments;
  OpenFeed feed(std::make_unique<GivenRequests>(std::move(lengths)));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  std::vector<Time> ways;
  for (const RequestMoments& request : moments.requests)
    if (request.output > 1) ways.push_back(request.handed_over - request.first_token);
  std::sort(ways.begin(), ways.end());
  return ways;
}

double transferred(const SystemRules& rules) {
  OpenFeed feed(std::make_unique<GivenRequests>(std::vector<Lengths>(5, {100, 2})));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  return system.transferred_bytes();
}

}  // namespace

// Eight prompts of 1,000 tokens are one iteration of 81 ms. A cache takes 1 ms: nine layers of all eight, 7.2
// ms, go meanwhile, and the last layers one after the other behind it, 0.1 ms each. Otherwise all go behind
// it.
TEST_CASE("of the prompts of an iteration only last layers are left when it ends") {
  RowCost cost(1e-5);
  for (const bool layerwise : {false, true}) {
    const std::vector<Time> ways = ways_of(apart(cost, 1000, layerwise), std::vector<Lengths>(8, {1000, 2}));
    REQUIRE(ways.size() == 8);
    for (int i = 0; i < 8; ++i) CHECK(ways[i] == (layerwise ? 100_us : 1_ms) * (i + 1));
  }
}

// One iteration of 11 ms, of which the first layers end after 1.1; ten caches of 4 ms keep the port from then
// on.
TEST_CASE("caches that take longer than the prompts leave without a pause from the first layer on") {
  RowCost cost(1e-5);
  const std::vector<Time> ways = ways_of(apart(cost, 40'000), std::vector<Lengths>(10, {100, 2}));
  REQUIRE(ways.size() == 10);
  CHECK(ways.back() == 1100_us + 40_ms - 11_ms);
}

// Two replicas compute from 0 to 40 and to 41 ms. What the first sends is 3.9 ms of the receiver's port, long
// before the second one ends, and the layer that is left of the second is 0.4 ms.
TEST_CASE("a port that was idle while a prompt was computed took its layers in whoever sent last") {
  RowCost cost(1e-5);
  SystemRules rules = apart(cost, 1000);
  rules.pools[0].instances = 2;
  CHECK(ways_of(rules, {{3900, 2}, {4000, 2}}) == std::vector<Time>{390_us, 400_us});
}

// Iterations of 1,000 tokens: 900 of the first prompt, which ends with them, and 100 of the second, until 11
// ms; its other 900 until 21. Of its 20 ms on the wire 2 go during the first iteration, the other 18 not
// before 12 ms, when the first layer of the second one is computed: they end at 30.
TEST_CASE("tokens that are not computed yet are not sent") {
  RowCost cost(1e-5);
  SystemRules rules = apart(cost, 20'000);
  rules.pools[0].instance.replica.token_budget = 1000;
  CHECK(ways_of(rules, {{900, 1}, {1000, 2}}) == std::vector<Time>{9_ms});
}

// A prompt of 4 kB goes to where it is computed, its second token of 4 bytes comes back from where it was
// made. The cache of 1 MB takes a millisecond, or ten and the 20 of the way over the users' link.
TEST_CASE("a cache passes the users' link only where one of its pools stands with them") {
  RowCost cost(1e-5);
  const WanRules wan{20_ms, {1e8}};
  for (const bool prompt_away : {false, true}) {
    for (const bool decode_away : {false, true}) {
      INFO("prompt away: " << prompt_away << ", decoding away: " << decode_away);
      SystemRules rules = apart(cost, 1000, false);
      if (prompt_away) rules.pools[0].wan = wan;
      if (decode_away) rules.pools[1].wan = wan;
      OpenFeed feed(std::make_unique<GivenRequests>(std::vector<Lengths>{{1000, 2}}));
      ServingSystem system(rules, feed);
      while (system.advance()) continue;
      const std::vector<PoolFigures> pools = system.pools();
      const bool passes = prompt_away != decode_away;
      CHECK(pools[0].wan.cache_bytes + pools[1].wan.cache_bytes == (passes ? 1e6 : 0));
      const Time there = prompt_away ? 20_ms + 40_us : 0_ms, back = decode_away ? 20_ms + 40_ns : 0_ms;
      CHECK(system.span() == there + 11_ms + (passes ? 30_ms : 1_ms) + 1010_us + back);
    }
  }
}

// A cache of 1 MB takes ten milliseconds of the users' link, nine of them while its prompt is computed: the
// last layer leaves when that is, and is on its way for one and the 20 of the link.
TEST_CASE("no layer has passed the users' link before it was computed and on its way") {
  RowCost cost(1e-5);
  for (const int away : {0, 1}) {
    SystemRules rules = apart(cost, 1000);
    rules.pools[away].wan = WanRules{20_ms, {1e8}};
    const std::vector<Time> ways = ways_of(rules, {{1000, 2}});
    REQUIRE(ways.size() == 1);
    CHECK(ways.front().seconds() == Approx(21e-3));
  }
}

TEST_CASE("a cache has the bytes of the pool that decodes it, in whatever order pools are given") {
  RowCost cost;
  SystemRules rules = apart(cost, 1000);
  rules.pools[0].cache_bytes_per_token = 1000;
  rules.pools[1].cache_bytes_per_token = 2000;
  CHECK(transferred(rules) == 5 * 100 * 2000.0);
  std::swap(rules.pools[0], rules.pools[1]);
  CHECK(transferred(rules) == 5 * 100 * 2000.0);
}

// A cache of 30 pages for 20 users whose sequences grow from 2 to 10 pages: three of them fit. Who is driven
// out waits for some of those that run, not for all who come after.
TEST_CASE("who is driven out where others only decode goes on before those who come after") {
  for (const std::int64_t host_pages : {0, 1000}) {
    RowCost cost(1e-5);
    Moments moments;
    SystemRules rules = apart(cost, 1000);
    rules.observer = &moments;
    rules.pools[1].instance.replica.pages = 30;
    rules.pools[1].instance.replica.host_pages = host_pages;
    ClosedFeed feed(std::make_unique<GivenRequests>(std::vector<Lengths>(400, {100, 500})), 20);
    ServingSystem system(rules, feed);
    while (system.advance()) continue;
    std::vector<Time> stays;
    for (const RequestMoments& request : moments.requests)
      stays.push_back(request.last_token - request.arrival);
    std::sort(stays.begin(), stays.end());
    REQUIRE(stays.size() == 400);
    CHECK(system.pools()[1].preemptions > 100);
    CHECK(stays.back() < stays[200] * 5);
  }
}

// Two replicas, each with a prompt of 11 ms and a cache of 1 ms.
TEST_CASE("caches of replicas that share a NIC go one after the other") {
  RowCost cost(1e-5);
  for (const int sharing : {1, 2}) {
    SystemRules rules = apart(cost, 1000, false);
    for (PoolRules& pool : rules.pools) pool.instances = 2, pool.replicas_on_port = sharing;
    CHECK(ways_of(rules, {{1000, 2}, {1000, 2}}) == std::vector<Time>{1_ms, sharing == 1 ? 1_ms : 2_ms});
  }
}

// The same on their way to two instances, or to two lanes of one pipeline, whose stages both have.
TEST_CASE("caches for lanes of one pipeline go one after the other") {
  RowCost cost(1e-5);
  for (const int lanes : {1, 2}) {
    SystemRules rules = apart(cost, 1000, false);
    for (PoolRules& pool : rules.pools) pool.instances = 2;
    rules.pools[1].lanes = lanes;
    CHECK(ways_of(rules, {{1000, 2}, {1000, 2}}) == std::vector<Time>{1_ms, lanes == 1 ? 1_ms : 2_ms});
  }
}

// A prompt of 11 ms whose cache takes 1 ms: of ten layers the last one is left. Two stages on either side
// send at twice the rate, each its own layers, the last one as fast as one stage does.
TEST_CASE("stages send their layers at once, and a layer no faster for that") {
  RowCost cost(1e-5);
  for (const bool layerwise : {false, true}) {
    SystemRules rules = apart(cost, 1000, layerwise);
    for (PoolRules& pool : rules.pools) pool.transfer_rate = {2e9}, pool.sending_stages = 2;
    CHECK(ways_of(rules, {{1000, 2}}) == std::vector<Time>{layerwise ? 100_us : 500_us});
    rules.pools[1].transfer_rate = {1e9}, rules.pools[1].sending_stages = 1;
    CHECK(ways_of(rules, {{1000, 2}}) == std::vector<Time>{layerwise ? 100_us : 1_ms});
  }
}

}  // namespace moebius
