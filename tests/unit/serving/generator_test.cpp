// Drawn traffic against the laws that it is drawn from.
#include "workloads/serving/traffic/generator.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "hw/error.h"
#include "tests/catch.h"
#include "workloads/serving/kv/kv_replay.h"

namespace moebius {
namespace {

using namespace literals;

std::vector<TrafficRequest> all_of(const Generator& generator) {
  const auto traffic = generate(generator);
  std::vector<TrafficRequest> requests;
  TrafficRequest request;
  while (traffic->next(request)) requests.push_back(request);
  return requests;
}

Generator of_kind(std::string_view name, std::int64_t requests) {
  for (const TrafficKind& kind : traffic_kinds()) {
    if (kind.name != name) continue;
    return {.arrivals = {.rate = kind.rate / kind.session.turns, .period = {}},
            .session = kind.session,
            .requests = requests};
  }
  throw std::runtime_error("no such kind");
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size())) / mean;
}

std::vector<double> gaps_of(const Arrivals& arrivals, int count) {
  ArrivalClock clock(arrivals, 1);
  std::vector<double> gaps;
  double last = 0;
  for (int i = 0; i < count; ++i) {
    const double now = clock.next().seconds();
    gaps.push_back(now - last);
    last = now;
  }
  return gaps;
}

}  // namespace

TEST_CASE("gaps of Poisson arrivals vary as much as they last") {
  // Standard errors over 100,000 gaps: 0.3% of the mean, about 0.3% of the variation.
  const std::vector<double> gaps = gaps_of({.rate = 5, .period = {}}, 100000);
  CHECK(mean_of(gaps) == Approx(0.2).epsilon(0.015));
  CHECK(variation_of(gaps) == Approx(1).epsilon(0.02));
}

TEST_CASE("gaps of gamma arrivals have the asked variation") {
  for (const double variation : {0.5, 1.0, 3.0}) {
    INFO(variation);
    const std::vector<double> gaps =
        gaps_of({.law = ArrivalLaw::kGamma, .rate = 5, .variation = variation, .period = {}}, 400000);
    CHECK(mean_of(gaps) == Approx(0.2).epsilon(0.03));
    CHECK(variation_of(gaps) == Approx(variation).epsilon(0.03));
  }
}

TEST_CASE("diurnal arrivals come as the sine says") {
  // In the first half of a period there are (1 + 2 a / pi) of the second half's (1 - 2 a / pi).
  ArrivalClock clock({.law = ArrivalLaw::kDiurnal, .rate = 50, .period = 100_s, .amplitude = 0.8}, 1);
  double first = 0, second = 0;
  for (;;) {
    const double now = clock.next().seconds();
    if (now > 2000) break;
    (std::fmod(now, 100) < 50 ? first : second) += 1;
  }
  CHECK(first + second == Approx(50 * 2000).epsilon(0.02));
  const double share = 2 * 0.8 / std::acos(-1.0);
  CHECK(first / second == Approx((1 + share) / (1 - share)).epsilon(0.05));
}

TEST_CASE("equal seeds make equal traffic and others do not") {
  Generator generator = of_kind("conversation", 300);
  const auto a = all_of(generator), b = all_of(generator);
  generator.seed = 2;
  const auto c = all_of(generator);
  int same = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].arrival == b[i].arrival);
    REQUIRE(a[i].blocks == b[i].blocks);
    REQUIRE(a[i].output_tokens == b[i].output_tokens);
    same += a[i].blocks == c[i].blocks ? 1 : 0;
  }
  CHECK(same == 0);
}

TEST_CASE("every kind comes in order with a block for each started 512 tokens") {
  for (const TrafficKind& kind : traffic_kinds()) {
    INFO(kind.name);
    Time last;
    const auto requests = all_of(of_kind(kind.name, 2000));
    CHECK(requests.size() == 2000);
    for (const TrafficRequest& request : requests) {
      REQUIRE(request.arrival >= last);
      last = request.arrival;
      REQUIRE(request.blocks.size() == static_cast<std::size_t>((request.input_tokens + 511) / 512));
      REQUIRE(request.input_tokens + request.output_tokens <= kind.session.most_tokens);
      REQUIRE(request.output_tokens >= 1);
    }
  }
}

TEST_CASE("a block stands at one place behind one other block") {
  // What hash_ids of traces have, too: equal ids are equal beginnings.
  for (const TrafficKind& kind : traffic_kinds()) {
    std::map<std::uint64_t, std::pair<std::size_t, std::uint64_t>> known;
    for (const TrafficRequest& request : all_of(of_kind(kind.name, 1000))) {
      for (std::size_t i = 0; i < request.blocks.size(); ++i) {
        const std::pair place{i, i == 0 ? 0 : request.blocks[i - 1]};
        REQUIRE(known.emplace(request.blocks[i], place).first->second == place);
      }
    }
  }
}

TEST_CASE("a turn begins with all that its session said before") {
  Generator generator = of_kind("agent", 500);
  std::map<std::int64_t, TrafficRequest> before;
  int turns = 0;
  for (const TrafficRequest& request : all_of(generator)) {
    const auto found = before.find(request.session);
    if (found != before.end()) {
      ++turns;
      const TrafficRequest& last = found->second;
      REQUIRE(request.input_tokens > last.input_tokens + last.output_tokens);
      REQUIRE(request.arrival == last.arrival + request.pause);
      for (std::int64_t i = 0; i < last.input_tokens / 512; ++i) REQUIRE(request.blocks[i] == last.blocks[i]);
      if (last.input_tokens % 512 != 0) REQUIRE(request.blocks[last.blocks.size() - 1] != last.blocks.back());
    }
    before[request.session] = request;
  }
  CHECK(turns > 100);
}

TEST_CASE("sessions share the prompt of the system and nothing else") {
  // 1024 shared tokens, one prompt: two blocks are common to all, the third to none.
  Generator generator{
      .arrivals = {.rate = 1, .period = {}},
      .session = {.first = {2000, 0}, .further = {}, .output = {10, 0}, .shared_tokens = 1024, .pause = {}},
      .requests = 50};
  std::set<std::uint64_t> second, third;
  for (const TrafficRequest& request : all_of(generator)) {
    CHECK(request.input_tokens == 3024);
    second.insert(request.blocks[1]);
    third.insert(request.blocks[2]);
  }
  CHECK(second.size() == 1);
  CHECK(third.size() == 50);
}

TEST_CASE("images come with the first turn and bring their tokens") {
  double images = 0, sessions = 0;
  for (const TrafficRequest& request : all_of(of_kind("multimodal", 20000))) {
    images += request.images;
    sessions += request.pause.ns == 0 ? 1 : 0;  // a first turn
    REQUIRE(request.input_tokens >= 1200 * request.images);
  }
  CHECK(images / sessions == Approx(1.5).epsilon(0.05));
}

TEST_CASE("requests that share nothing hit nothing") {
  const auto traffic = generate(of_kind("independent", 500));
  CHECK(kv::replay(*traffic, {}).hit_blocks == 0);
}

// The generator stands in for the trace (kvcache-ai/Mooncake: 12,031 requests over 3,537 s, 12,035 tokens in
// and 343 out, 36.6% of 288,500 blocks hit; 21.2% and 32.6% in 10,000 and 30,000 blocks).
TEST_CASE("drawn conversations are near the published ones") {
  const auto replayed = [](std::optional<std::int64_t> capacity) {
    return kv::replay(*generate(of_kind("conversation", 12031)),
                      {.capacity_blocks = capacity, .service_time = {}});
  };
  const kv::ReplayFigures endless = replayed(std::nullopt);
  CHECK(endless.hit_share() == Approx(0.366).margin(0.02));
  CHECK(static_cast<double>(endless.total_blocks) == Approx(288500).epsilon(0.05));
  CHECK(static_cast<double>(endless.input_tokens) / 12031 == Approx(12035).epsilon(0.05));
  CHECK(static_cast<double>(endless.output_tokens) / 12031 == Approx(343).epsilon(0.05));
  CHECK(endless.last_arrival.seconds() == Approx(3537).epsilon(0.1));
  CHECK(replayed(10000).hit_share() == Approx(0.212).margin(0.03));
  CHECK(replayed(30000).hit_share() == Approx(0.326).margin(0.03));
}

TEST_CASE("sessions that end for their length come so much more often") {
  Generator generator = of_kind("agent", 100000);
  generator.session.turns = 30;
  CHECK(mean_turns(generator.session) < 30);
  generator.session.most_tokens = 16384;
  generator.arrivals.rate = 10 / mean_turns(generator.session);
  CHECK(100000 / all_of(generator).back().arrival.seconds() == Approx(10).epsilon(0.05));
}

}  // namespace moebius
