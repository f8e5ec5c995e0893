// When turns of sessions come: what goes on from an answer does not come before it.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/laws/row_cost.h"
#include "tests/process.h"
#include "workloads/serving/system/serving_system.h"
#include "workloads/serving/traffic/generator.h"
#include "workloads/serving/traffic/trace_file.h"

namespace moebius {
namespace {

using namespace literals;

// What a feed gives and what it is told.
class WatchedFeed : public RequestFeed {
 public:
  explicit WatchedFeed(std::unique_ptr<RequestFeed> feed) : feed_(std::move(feed)) {}
  std::optional<Time> due() override { return feed_->due(); }
  void take(Arrival& arrival) override {
    feed_->take(arrival);
    taken[arrival.tag] = arrival.request;
  }
  void answered(std::int64_t tag, Time now) override {
    ends[tag] = now;
    feed_->answered(tag, now);
  }
  std::map<std::int64_t, TrafficRequest> taken;
  std::map<std::int64_t, Time> ends;

 private:
  std::unique_ptr<RequestFeed> feed_;
};

// On two replicas, each an instance; returns the time from the first arrival to the last token.
Time serve(WatchedFeed& feed, StepCost& cost) {
  SystemRules rules;
  PoolRules& pool = rules.pools.emplace_back();
  pool.cost = &cost;
  pool.instances = 2;
  pool.instance.replica.page_tokens = 64;
  pool.instance.replica.pages = 4000;
  ServingSystem system(rules, feed);
  while (system.advance()) {
  }
  CHECK(system.waiting() == 0);
  CHECK(system.metrics().finished() == static_cast<std::int64_t>(feed.taken.size()));
  CHECK(feed.ends.size() == feed.taken.size());
  return system.span();
}

std::string turns(int count, const std::string& times) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += R"({"session_id": "a", )" + times + R"("input_length": 500, "output_length": 10})" + "\n";
  return text;
}

WatchedFeed feed_of(const std::string& text, const test::Scratch& scratch, double rate_scale = 1) {
  return WatchedFeed(std::make_unique<OpenFeed>(open_trace({scratch.write("t.jsonl", text)}), rate_scale));
}

std::unique_ptr<TrafficStream> agents() {
  const TrafficKind& kind = traffic_kinds()[2];
  return generate({.arrivals = {.rate = 40, .period = {}}, .session = kind.session, .requests = 2000});
}

// Turns that came before the answer which they go on from had ended, and its pause.
int too_early(const WatchedFeed& feed, bool pauses) {
  int early = 0, turns = 0;
  for (const auto& [number, request] : feed.taken) {
    if (request.follows < 0) continue;
    ++turns;
    early += request.arrival < feed.ends.at(request.follows) + (pauses ? request.pause : Time{}) ? 1 : 0;
  }
  CHECK(turns > 500);
  return early;
}

}  // namespace

TEST_CASE("five turns without stamps take five answers and the four pauses between them") {
  const test::Scratch scratch;
  RowCost cost;
  WatchedFeed one = feed_of(turns(1, R"("delay": 1000, )"), scratch);
  const Time answer = serve(one, cost);
  WatchedFeed five = feed_of(turns(5, R"("delay": 700, "tool_wait_ms": 300, )"), scratch);
  CHECK(serve(five, cost).ns == 5 * answer.ns + 4'000'000'000);
  // Times of a trace that runs twice as fast are half as long, pauses too.
  WatchedFeed fast = feed_of(turns(5, R"("delay": 1000, )"), scratch, 2);
  CHECK(serve(fast, cost).ns == 5 * answer.ns + 2'000'000'000);
}

TEST_CASE("a stamp holds a turn back until then, and no turn that has a stamp alone waits for an answer") {
  const test::Scratch scratch;
  RowCost cost(1e-3);  // half a second a prompt
  const auto stamped = [](int ms, const char* pause) {
    return turns(1, R"("timestamp": )" + std::to_string(ms) + ", " + pause);
  };
  WatchedFeed open = feed_of(stamped(0, "") + stamped(1, "") + stamped(2, ""), scratch);
  serve(open, cost);
  CHECK(open.taken[2].arrival == 2_ms);
  CHECK(open.ends[0] > 500_ms);
  WatchedFeed both =
      feed_of(stamped(0, "") + stamped(1, R"("delay": 10, )") + stamped(60'000, R"("delay": 10, )"), scratch);
  serve(both, cost);
  CHECK(both.taken[1].arrival == both.ends[0] + 10_ms);
  CHECK(both.taken[2].arrival == 60'000_ms);
}

TEST_CASE("no agent asks again before it was answered and its tool has ended, however slow the service") {
  RowCost cost(2e-5);
  WatchedFeed open(std::make_unique<OpenFeed>(agents()));
  serve(open, cost);
  CHECK(open.taken.size() == 2000);
  CHECK(too_early(open, true) == 0);
  // Users who ask again at once take what may come: no pauses then.
  WatchedFeed closed(std::make_unique<ClosedFeed>(agents(), 32));
  serve(closed, cost);
  CHECK(closed.taken.size() == 2000);
  CHECK(too_early(closed, false) == 0);
}

}  // namespace moebius
