// Wires of 100 B/s each, sampled every second.
#include "sim/network/network_counters.h"

#include <catch2/catch.hpp>

#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

constexpr Time kOneSecond{1'000'000'000};

struct Net {
  Cluster cluster = make_cluster({.nodes = 4, .per_node = 1, .nic = 100});
  WireTable table{cluster};
  int a = table.wire({WireKind::kNicOut, 0}), b = table.wire({WireKind::kNicOut, 1});
  std::unique_ptr<Network> network = make_fluid_network(table);
  Layout layout;
  Recorder recorder{layout, {}};
  NetworkCounters counters{table, *network, recorder, kOneSecond};

  // From event to event, as the machine does.
  void run() {
    std::vector<std::int32_t> ended;
    Time now;
    for (Time next = network->next_event(); next < kForever; next = network->next_event()) {
      counters.before(next);
      network->advance(next, ended);
      now = next;
    }
    counters.finish(now);
  }

  std::vector<std::pair<double, double>> samples(const std::string& name) {
    std::vector<std::pair<double, double>> of_name;
    const Timeline& timeline = recorder.timeline();
    for (const CounterSample& sample : timeline.samples)
      if (timeline.counters[sample.counter] == name)
        of_name.emplace_back(sample.time.seconds(), sample.value);
    return of_name;
  }
};

Step step_of(std::vector<FlowClass> flows) {
  Step step;
  step.flows = std::move(flows);
  return step;
}

using Samples = std::vector<std::pair<double, double>>;

}  // namespace

// 250 bytes over a wire of 100 B/s: full for two seconds, then for half of one. The last interval ends with
// the run, so that it is full as well; from there on nothing is under way.
TEST_CASE("a wire's counter says once that it is full and once that it is idle") {
  Net net;
  const Step step = step_of({{250, {{net.a, 1}}}});
  net.network->start(0, step, 0, {});
  net.run();
  REQUIRE(net.samples("wire nic-out 0") == Samples{{0, 1}, {2.5, 0}});
  REQUIRE(net.samples("wire nic-out 1").empty());
}

// 150 bytes and nothing more on wire a, 300 on wire b: the second interval of a is half busy.
TEST_CASE("a sample is the mean over its interval") {
  Net net;
  const Step step = step_of({{150, {{net.a, 1}}}, {300, {{net.b, 1}}}});
  net.network->start(0, step, 0, {});
  net.run();
  const Samples samples = net.samples("wire nic-out 0");
  REQUIRE(samples.size() == 3);
  REQUIRE(samples[1].first == 1);
  REQUIRE(samples[1].second == Approx(0.5));
  REQUIRE(samples[2].second == Approx(0));
}

// Full for a second, and half of it.
TEST_CASE("a tier has the mean and the largest share of its wires") {
  Net net;
  const Step step = step_of({{100, {{net.a, 1}}}, {50, {{net.b, 1}}}});
  net.network->start(0, step, 0, {});
  net.run();
  REQUIRE(net.samples("tier nic-out mean") == Samples{{0, 0.75}, {1, 0}});
  REQUIRE(net.samples("tier nic-out max") == Samples{{0, 1}, {1, 0}});
}

TEST_CASE("a network that does not count bytes refuses to be sampled") {
  Net net;
  const std::unique_ptr<Network> plain = make_alpha_beta_network();
  NetworkCounters counters(net.table, *plain, net.recorder, kOneSecond);
  REQUIRE_THROWS_WITH(counters.before(Time{2 * kOneSecond.ns}),
                      Catch::Contains("carried") || Catch::Contains("wire"));
}
