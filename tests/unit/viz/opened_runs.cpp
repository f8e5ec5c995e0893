// What is read off an opened run: colours, searches, who waited for whom, how two runs differ.
#include "hw/error.h"

#include <algorithm>
#include <string>
#include "tests/catch.h"

#include "tests/unit/viz/drawn_run.h"
#include "viz/data/colouring.h"
#include "viz/data/neighbours.h"
#include "viz/data/run_data.h"
#include "viz/data/run_difference.h"
#include "viz/data/twin.h"

namespace {

using namespace moebius;
using namespace moebius::viz;
using test::two_stages;

struct Opened {
  explicit Opened(const Timeline& timeline, const std::string& report = test::kReport)
      : run(test::write_run_as(scratch, "run", timeline, report)) {}
  test::Scratch scratch;
  RunData run;

  Place place(std::int32_t sequence, std::int32_t op) const {
    for (std::size_t i = 0; i < run.columns.size(); ++i) {
      Place found;
      const Span span = run.columns.span(i);
      if (span.sequence == sequence && span.op == op && run.lanes.find(run.columns, i, found.row, found.slot))
        return found;
    }
    FAIL("no such op");
    return {};
  }
  std::string name(Place at) const { return run.name_of_op(run.lanes.op_row(at.slot)); }
  Span span(Place at) const { return run.columns.span(run.lanes.span(at.slot)); }
};

std::size_t count(const Categories& categories, std::uint8_t category) {
  return static_cast<std::size_t>(std::count(categories.begin(), categories.end(), category));
}

}  // namespace

TEST_CASE("a run's figures are found by their names, and missing ones are not made up") {
  const Opened opened(two_stages());
  CHECK(opened.run.title == "two stages");
  CHECK(opened.run.number("memory.capacity_bytes") == 8e9);
  CHECK(opened.run.text("network.binding.tier") == "NIC out");
  CHECK(opened.run.figure("memory.nothing.below") == nullptr);
  CHECK(opened.run.number("memory", -1) == -1);  // an object is no number
  const Opened without(two_stages(), "");
  CHECK(without.run.report_trouble.find("report.json") != std::string::npos);
}

TEST_CASE("dispatches that no compute covers are exposed") {
  // Each dispatch stands between two computations of its rank: nothing beside it. Sends and receives go on
  // beside compute but the first receive, at 155,000 ns, before its stage computes at all, and the last send,
  // after it.
  const Opened opened(two_stages());
  std::size_t found = 0;
  const Categories shown = categories_of(opened.run, ColourBy::kExposure, {}, {}, found);
  CHECK(found == opened.run.lanes.size());
  for (std::size_t slot = 0; slot < shown.size(); ++slot)
    if (opened.run.tables().ops[opened.run.lanes.op_row(slot)].kind == OpKind::kDispatch)
      CHECK(shown[slot] == static_cast<std::uint8_t>(Shown::kExposed));
  CHECK(count(shown, static_cast<std::uint8_t>(Shown::kCompute)) == 48);  // 3 of each pass
  CHECK(count(shown, static_cast<std::uint8_t>(Shown::kHidden)) > 10);
}

TEST_CASE("all words of a search must be met") {
  const Opened opened(two_stages());
  const auto found = [&](const std::string& text) {
    std::size_t passed = 0;
    const Categories categories = categories_of(opened.run, ColourBy::kKind, {text, false}, {}, passed);
    std::size_t left_out = 0;
    for (const std::uint8_t category : categories) left_out += (category & kFilteredOut) != 0 ? 1 : 0;
    CHECK(passed + left_out == opened.run.lanes.size());
    return passed;
  };
  CHECK(found("") == 80);      // 5 ops, 8 microbatches, 2 stages
  CHECK(found("GEMM") == 32);  // gemm and grouped_gemm, in either case
  CHECK(found("op:gemm layer:1") == 16);
  CHECK(found("microbatch:3") == 10);
  CHECK(found("mb:3 rank:4") == 5);
  CHECK(found("stage 0") == 40);  // the fragment's name: both words stand in it
  CHECK(found("rank:7") == 0);
  CHECK(found("layer:nonsense") == 0);
}

TEST_CASE("an op waited for what ended last before it, of its own lane first") {
  const Opened opened(two_stages());
  // The experts' GEMM began when its dispatch ended, at 70,000.
  const auto before = waited_for(opened.run, opened.place(0, 2));
  REQUIRE(before);
  CHECK(opened.name(before->place) == "dispatch experts L0");
  // The second microbatch's attention follows the GEMM that ended when it began, not the send of that moment.
  const auto next = waited_for(opened.run, opened.place(2, 0));
  REQUIRE(next);
  CHECK(opened.name(next->place) == "gemm down L0");
  CHECK_FALSE(waited_for(opened.run, opened.place(0, 0)));  // the first op of the run
  const std::vector<Place> after = waited_for_it(opened.run, opened.place(0, 3), 10);
  REQUIRE(after.size() == 2);  // the next attention and the send
  CHECK(opened.span(after[0]).start == opened.span(opened.place(0, 3)).end);
}

TEST_CASE("where a timeline keeps dependencies an op waited for them or for its lane") {
  // Stage 0: every op depends on the one before it; the passes of stage 1 come after those of stage 0.
  Timeline timeline = two_stages();
  for (std::int32_t op = 1; op < 5; ++op) {
    timeline.ops[op].first_dependency = static_cast<std::int32_t>(timeline.dependencies.size());
    timeline.ops[op].num_dependencies = 1;
    timeline.dependencies.push_back(op - 1);
  }
  for (std::int32_t mb = 0; mb < 8; ++mb) {
    timeline.submissions[2 * mb + 1].first_after = mb;
    timeline.submissions[2 * mb + 1].num_after = 1;
    timeline.afters.push_back(2 * mb);
  }
  const Opened opened(timeline);
  const auto dispatch = waited_for(opened.run, opened.place(0, 1));
  REQUIRE(dispatch);
  CHECK(opened.name(dispatch->place) == "attention L0");
  CHECK(dispatch->reason == Reason::kDependency);
  const auto attention = waited_for(opened.run, opened.place(2, 0));
  REQUIRE(attention);
  CHECK(opened.name(attention->place) == "gemm down L0");
  CHECK(attention->reason == Reason::kLane);
  const auto next_stage = waited_for(opened.run, opened.place(1, 0));
  REQUIRE(next_stage);
  CHECK(opened.span(next_stage->place).sequence == 0);  // its send, which ended last
  CHECK(opened.name(next_stage->place).starts_with("send"));
  // The send alone depends on the last GEMM, though the next attention begins at the same moment.
  const std::vector<Place> after_gemm = waited_for_it(opened.run, opened.place(0, 3), 10);
  REQUIRE(after_gemm.size() == 1);
  CHECK(opened.name(after_gemm[0]).starts_with("send"));
  const std::vector<Place> after_send = waited_for_it(opened.run, opened.place(0, 4), 10);
  REQUIRE(after_send.size() == 1);  // the first op of the next stage
  CHECK(opened.span(after_send[0]).sequence == 1);
}

TEST_CASE("where a single op waits for one of an earlier submission the timeline says so") {
  Timeline timeline = two_stages();  // the first op of the second microbatch, for the dispatch of the first
  timeline.follows = {{2, 0, 0, 1}};
  timeline.dependencies = {0};
  const Opened opened(timeline);
  const std::vector<Place> after = waited_for_it(opened.run, opened.place(0, 1), 10);
  REQUIRE(after.size() == 1);
  CHECK(opened.span(after[0]).sequence == 2);
  CHECK(opened.name(after[0]) == "attention L0");
}

TEST_CASE("a receive finds its send") {
  const Opened opened(two_stages());
  CHECK(opened.run.transfers().size() == 8);
  for (std::int32_t mb = 0; mb < 8; ++mb) {
    const auto there = other_side(opened.run, opened.place(2 * mb, 4));
    REQUIRE(there);
    CHECK(opened.span(*there).sequence == 2 * mb + 1);
    CHECK(opened.span(*there).end == opened.span(opened.place(2 * mb, 4)).end);
  }
  CHECK_FALSE(other_side(opened.run, opened.place(0, 0)));
}

TEST_CASE("the critical path is that of the run's report") {
  const Opened opened(two_stages());
  const std::vector<bool> on_path = spans_on_critical_path(opened.run);
  std::size_t found = 0;
  const Categories shown = categories_of(opened.run, ColourBy::kKind, {"", true}, on_path, found);
  CHECK(found == static_cast<std::size_t>(std::count(on_path.begin(), on_path.end(), true)));
  CHECK(found > 10);
  CHECK(found < 80);
  // The run ends with the last GEMM of stage 1.
  const Place last = opened.place(15, 3);
  CHECK((shown[last.slot] & kFilteredOut) == 0);
}

TEST_CASE("two runs differ where one was slower") {
  const Opened a(two_stages()), b(two_stages(50'000));
  const RunDifference d = difference_of(a.run, b.run);
  CHECK(d.same_schedule);
  CHECK(d.joined == 80);
  CHECK(d.only_a == 0);
  REQUIRE_FALSE(d.worst.empty());
  const Span worst = a.run.columns.span(d.worst[0].span_a);
  CHECK(worst.sequence == 11);  // microbatch 5 of stage 1
  CHECK(a.run.name_of_op(3) == "gemm down L0");
  CHECK(d.worst[0].b - d.worst[0].a == Approx(50e-6));
  CHECK(d.worst.size() == 80);
  REQUIRE_FALSE(d.kinds.empty());
  CHECK(d.kinds[0].kind == OpKind::kGemm);
  CHECK(d.kinds[0].b - d.kinds[0].a == Approx(50e-6));
}

TEST_CASE("runs that keep whole submissions have no ops to join") {
  Timeline whole = two_stages();
  for (auto& [name, value] : whole.facts)
    if (name == "timeline_detail") value = "steps";
  const Opened a(two_stages()), b(whole);
  CHECK_FALSE(difference_of(a.run, b.run).has_ops);
  CHECK(b.run.name_of_op(3) == "forward stage 0");
}

TEST_CASE("runs of other work are told apart by kind") {
  Timeline other = two_stages();
  for (OpRow& op : other.ops)
    if (op.kind == OpKind::kGemm) op.kind = OpKind::kGroupedGemm;
  const Opened a(two_stages()), b(other);
  const RunDifference d = difference_of(a.run, b.run);
  CHECK(d.joined == 64);
  CHECK(d.different == 16);  // at the same places
  CHECK(d.only_a == 0);
  CHECK(d.only_b == 0);
}

// Two steps against one: kinds are those of a step.
TEST_CASE("training of other lengths is laid beside each other by the step") {
  Timeline one = two_stages(), two = two_stages();
  one.facts.emplace_back("training_steps", "1");
  two.facts.emplace_back("training_steps", "2");
  const Opened a(one), b(two);
  const RunDifference d = difference_of(a.run, b.run);
  CHECK(d.by_step());
  CHECK(d.steps_b == 2);
  for (const KindDifference& kind : d.kinds) CHECK(kind.b == Approx(kind.a / 2));
}

// Of an import what it counted is in its report: slices inside others would count twice.
TEST_CASE("an imported run's time by kind is that of its report") {
  Timeline imported = two_stages();
  imported.facts[1].second = "imported";
  const Opened a(two_stages()),
      b(imported, R"({"kind": "imported", "breakdown": {"by_kind": {"gemm": {"compute_s": 0.5}}}})");
  const RunDifference d = difference_of(a.run, b.run);
  CHECK(d.kinds[0].kind == OpKind::kGemm);
  CHECK(d.kinds[0].b == 0.5);
  for (std::size_t i = 1; i < d.kinds.size(); ++i) CHECK(d.kinds[i].b == 0);
}

TEST_CASE("figures of a pool whose name has dots are found") {
  const Opened opened(
      two_stages(),
      R"({"scenario": "two stages", "kind": "training", "pools": {"edge.1": {"devices": 8}, "edge": {"devices": 4}}})");
  CHECK(opened.run.number("pools.edge.1.devices") == 8);
  CHECK(opened.run.number("pools.edge.devices") == 4);
}

TEST_CASE("an op's twin in another run is the one that does its work, where that has further ops between") {
  const Opened run(two_stages());
  Timeline more = two_stages();
  // Another op before the last two of each submission.
  for (Span& span : more.spans)
    if (span.op >= 2) ++span.op;
  std::vector<OpRow> ops;
  for (OpRow op : more.ops) {
    if (op.index == 2) {
      OpRow extra = op;
      extra.kind = OpKind::kNorm;
      ops.push_back(extra);
    }
    if (op.index >= 2) ++op.index;
    ops.push_back(op);
  }
  more.ops = ops;
  const Opened other(more);
  int found = 0;
  for (std::size_t i = 0; i < run.run.columns.size(); ++i) {
    const auto twin = twin_of(run.run.columns, i, other.run.columns);
    REQUIRE(twin);
    const OpRow &a = run.run.tables().ops[run.run.columns.checked_row(i)],
                &b = other.run.tables().ops[other.run.columns.checked_row(*twin)];
    CHECK(a.kind == b.kind);
    CHECK(run.run.columns.sequence(i) == other.run.columns.sequence(*twin));
    ++found;
  }
  CHECK(found > 60);
}

TEST_CASE("colours and searches by microbatch go by the op's own of two") {
  Timeline both = two_stages();
  for (SubmissionRow& s : both.submissions) s.second_microbatch = s.microbatch + 100;
  for (OpRow& op : both.ops) op.second = op.kind == OpKind::kGemm ? 1 : 0;
  const Opened opened(both);
  std::size_t found = 0;
  categories_of(opened.run, ColourBy::kKind, {"microbatch:103", false}, {}, found);
  CHECK(found == 2);
}
