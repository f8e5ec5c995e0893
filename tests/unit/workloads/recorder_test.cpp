#include <catch2/catch.hpp>

#include <algorithm>

#include "models/layer_math.h"
#include "small_schedule.h"
#include "workloads/schedule/recorder.h"

using namespace moebius;

namespace {

Submission submission_of(std::int32_t sequence, const FragmentPtr& fragment, std::int32_t rank_class = 0) {
  return {.fragment = fragment, .sequence = sequence, .rank_class = rank_class, .after = {}};
}

Span span_of(std::int32_t sequence, std::int32_t op, std::int64_t start, std::int64_t end) {
  return {.sequence = sequence, .op = op, .start = {start}, .end = {end}};
}

// One submission of the small fragment, its four ops one after the other, 10 ns each.
void record_submission(Recorder& recorder, std::int32_t sequence, std::int64_t start) {
  for (int op = 0; op < 4; ++op) recorder.span(span_of(sequence, op, start + 10 * op, start + 10 * op + 10));
}

std::string fact(const Timeline& timeline, std::string_view name) {
  for (const auto& [key, value] : timeline.facts) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace

TEST_CASE("a timeline keeps each distinct fragment once, and every submission and span") {
  const Layout layout = small_layout(2, true);
  const FragmentPtr fragment = freeze(small_fragment());
  Recorder recorder(layout, {});
  for (int i = 0; i < 3; ++i)
    recorder.submitted(submission_of(i, i == 1 ? freeze(small_fragment()) : fragment));
  for (int i = 0; i < 3; ++i) record_submission(recorder, i, 40 * i);
  const Metrics metrics = recorder.finish({120});
  const Timeline& timeline = recorder.timeline();
  REQUIRE(timeline.fragments == std::vector<std::string>{"forward"});
  REQUIRE(timeline.ops.size() == 4);
  REQUIRE(timeline.ops[2].kind == OpKind::kGroupedGemm);
  REQUIRE(timeline.ops[2].flops == op_flops(OpKind::kGroupedGemm, fragment->ops[2].shape).value);
  REQUIRE(timeline.submissions.size() == 3);
  REQUIRE(timeline.spans.size() == 12);
  REQUIRE(timeline.class_sizes == std::vector<std::int32_t>{2});
  REQUIRE(metrics.spans == 12);
  REQUIRE(fact(timeline, "timeline_detail") == "ops");
  REQUIRE(fact(timeline, "dropped_spans") == "");
}

TEST_CASE("submissions may end in any order") {
  const Layout layout = small_layout(2, true);
  const FragmentPtr fragment = freeze(small_fragment());
  Recorder recorder(layout, {});
  recorder.submitted(submission_of(0, fragment));
  recorder.submitted(submission_of(1, fragment));
  record_submission(recorder, 1, 0);
  recorder.submitted(submission_of(2, fragment));
  record_submission(recorder, 0, 40);
  record_submission(recorder, 2, 80);
  REQUIRE(recorder.finish({120}).spans == 12);
}

TEST_CASE("work is counted over the ranks of the class") {
  // 2 ranks: a GEMM of 2*8*32*16 FLOPs on each; all 16 routed rows through 32x32 experts; every token that
  // leaves its rank goes with 64 bytes, and comes back.
  const Layout layout = small_layout(2, true);
  const FragmentPtr fragment = freeze(small_fragment());
  const Route& route = *fragment->routes[0];
  Recorder recorder(layout, {});
  recorder.submitted(submission_of(0, fragment));
  record_submission(recorder, 0, 0);
  const Metrics metrics = recorder.finish({40});
  REQUIRE(metrics.flops == 2 * (2 * 8 * 32 * 16) + 2 * 32 * 32 * (2 * 8 * 2));
  REQUIRE(metrics.sent_bytes == 2 * 64.0 * (route.tokens_between(0, 1) + route.tokens_between(1, 0)));
}

TEST_CASE("steps keep one span for each submission, waiting for peers left out") {
  const Layout layout = small_layout(2, true);
  Recorder recorder(layout, {.detail = Detail::kSteps});
  Fragment fragment = small_fragment();
  fragment.ops = {
      {.kind = OpKind::kRecv, .lane = Lane::kRecvForward, .group = GroupRole::kNext, .payload = {8}},
      {.kind = OpKind::kGemm, .shape = {.m = 1}}};
  recorder.submitted(submission_of(0, freeze(fragment)));
  Span recv = span_of(0, 0, 5, 30);
  recv.work_start = {25};
  recorder.span(recv);
  recorder.span(span_of(0, 1, 30, 50));
  recorder.finish({50});
  const Timeline& timeline = recorder.timeline();
  REQUIRE(timeline.spans.size() == 1);
  REQUIRE(timeline.spans[0].start == Time{25});
  REQUIRE(timeline.spans[0].end == Time{50});
  REQUIRE(timeline.spans[0].op == 0);
  REQUIRE(fact(timeline, "timeline_detail") == "steps");
}

TEST_CASE("no detail keeps no rows, and the same metrics") {
  const Layout layout = small_layout(2, true);
  const FragmentPtr fragment = freeze(small_fragment());
  const auto run = [&](Recorder& recorder) {
    recorder.submitted(submission_of(0, fragment));
    record_submission(recorder, 0, 0);
    recorder.counter(0, "memory", {5}, 1);
    return recorder.finish({40});
  };
  Recorder none(layout, {.detail = Detail::kNone}), all(layout, {});
  const Metrics a = run(none), b = run(all);
  REQUIRE(none.timeline().spans.empty());
  REQUIRE(none.timeline().ops.empty());
  REQUIRE(none.timeline().submissions.empty());
  REQUIRE(none.timeline().samples.empty());
  REQUIRE(a.breakdown.compute == b.breakdown.compute);
  REQUIRE(a.flops == b.flops);
  REQUIRE(none.schedule_hash() == all.schedule_hash());
}

// Four spans a submission, and room for six.
TEST_CASE("spans that no one will look at are counted as if they were kept") {
  const Layout layout = small_layout(2, true);
  const FragmentPtr fragment = freeze(small_fragment());
  for (const bool stores : {true, false}) {
    Recorder recorder(layout, {.max_bytes = {6.0 * sizeof(Span)}, .stores = stores});
    for (int i = 0; i < 2; ++i) recorder.submitted(submission_of(i, fragment));
    for (int i = 0; i < 2; ++i) record_submission(recorder, i, 40 * i);
    REQUIRE(recorder.finish({80}).spans == 8);
    REQUIRE(recorder.dropped_spans() == 2);
    REQUIRE(recorder.timeline().spans.size() == (stores ? 6 : 0));
  }
}

// 20,000 submissions of four ops: more than the 65,536 from which on there is room for all.
TEST_CASE("a long timeline keeps its spans in order") {
  const Layout layout = small_layout(2, true);
  const FragmentPtr fragment = freeze(small_fragment());
  Recorder recorder(layout, {});
  for (int i = 0; i < 20'000; ++i) {
    recorder.submitted(submission_of(i, fragment));
    record_submission(recorder, i, 40 * i);
  }
  recorder.finish({800'000});
  const std::vector<Span>& spans = recorder.timeline().spans;
  REQUIRE(spans.size() == 80'000);
  const auto before = [](const Span& a, const Span& b) { return a.sequence < b.sequence; };
  REQUIRE(std::is_sorted(spans.begin(), spans.end(), before));
  REQUIRE(spans.back().sequence == 19'999);
}

TEST_CASE("spans beyond the budget or after the window are left out and counted") {
  const Layout layout = small_layout(2, true);
  const FragmentPtr fragment = freeze(small_fragment());
  Recorder small(layout, {.max_bytes = {3.0 * sizeof(Span)}}), early(layout, {.window = Time{20}});
  for (Recorder* recorder : {&small, &early}) {
    recorder->submitted(submission_of(0, fragment));
    record_submission(*recorder, 0, 0);
    REQUIRE(recorder->finish({40}).spans == 4);
  }
  REQUIRE(small.timeline().spans.size() == 3);
  REQUIRE(small.dropped_spans() == 1);
  REQUIRE(fact(small.timeline(), "dropped_spans") == "1");
  REQUIRE(early.timeline().spans.size() == 3);  // those that start at 0, 10 and 20 ns
  REQUIRE(early.dropped_spans() == 1);
  REQUIRE(fact(early.timeline(), "dropped_spans") == "1");
  REQUIRE(fact(early.timeline(), "timeline_window_s") == "2e-08");
}

TEST_CASE("counters are named once, their samples share the budget") {
  const Layout layout = small_layout(2, true);
  Recorder recorder(layout, {.max_bytes = {2.0 * sizeof(CounterSample)}});
  recorder.counter(0, "memory", {1}, 10);
  recorder.counter(0, "memory", {2}, 20);
  recorder.counter(0, "power", {3}, 30);
  recorder.finish({40});
  REQUIRE(recorder.timeline().counters == std::vector<std::string>{"memory"});
  REQUIRE(recorder.timeline().samples.size() == 2);
  REQUIRE(recorder.timeline().samples[1].value == 20);
  REQUIRE(fact(recorder.timeline(), "dropped_samples") == "1");
}

TEST_CASE("the schedule's hash follows every submission and its order") {
  const Layout layout = small_layout(2, false);
  const FragmentPtr fragment = freeze(small_fragment());
  const auto hash = [&](const std::vector<Submission>& submissions) {
    Recorder recorder(layout, {});
    for (const Submission& submission : submissions) recorder.submitted(submission);
    return recorder.schedule_hash();
  };
  const Submission a = submission_of(0, fragment, 0), b = submission_of(1, fragment, 1);
  REQUIRE(hash({a, b}) == hash({a, b}));
  REQUIRE(hash({a}) != hash({a, b}));
  REQUIRE(hash({a, b}) != hash({submission_of(0, fragment, 1), submission_of(1, fragment, 0)}));
  Submission later = b;
  later.microbatch = 1;
  REQUIRE(hash({a, b}) != hash({a, later}));
  Submission after = b;
  after.after = {0};
  REQUIRE(hash({a, b}) != hash({a, after}));
}

TEST_CASE("work of fragments that are gone is forgotten") {
  // A workload that lowers every microbatch anew: each fragment lives as long as its submission is open.
  const Layout layout = small_layout(2, true);
  Recorder recorder(layout, {.detail = Detail::kNone});
  std::weak_ptr<const Fragment> first;
  for (int i = 0; i < 3; ++i) {
    Fragment fragment = small_fragment();
    fragment.ops[0].shape.m = 8 + i;
    const FragmentPtr frozen = freeze(fragment);
    if (i == 0) first = frozen;
    recorder.submitted(submission_of(i, frozen));
    record_submission(recorder, i, 40 * i);
  }
  REQUIRE(first.expired());
  // 2 ranks x 2*m*32*16 for m = 8, 9, 10, and three times the routed rows of the work test above
  REQUIRE(recorder.finish({120}).flops == 2 * 2 * 32 * 16 * (8 + 9 + 10) + 3 * 2 * 32 * 32 * 32);
}
