// Pages: what a report says stands in it, safe from what names contain.
#include "viz/page/run_page.h"

#include <algorithm>
#include <fstream>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"
#include "viz/page/charts.h"
#include "viz/page/html.h"
#include "viz/page/lanes_picture.h"

namespace moebius::viz {
namespace {

using namespace literals;

constexpr const char* kEscapedReport = R"({"scenario": "a <b> & \"c\"", "kind": "training", "executor": "sim",
  "detail": "fluid", "seed": 3, "step_time_s": 1.25, "mfu": 0.5,
  "breakdown": {"compute_s": 1.0, "exposed_communication_s": 0.25, "bubble_s": 0,
                "by_kind": {"gemm": {"compute_s": 0.9}, "dispatch": {"busy_s": 0.3, "exposed_s": 0.25}}},
  "memory": {"peak_bytes": 3e9, "capacity_bytes": 4e9, "by_kind": {"weights": 1e9, "activations": 2e9}},
  "network": {"tiers": [{"tier": "NIC out", "ports": 8, "carried_bytes": 1e9, "busy_share": 0.4}]}})";

class Run {
 public:
  explicit Run(const std::string& report = kEscapedReport) { scratch_.write("report.json", report); }
  RunOnPage page() const { return RunOnPage(directory()); }
  std::string directory() const {
    const std::string path = scratch_.path("");
    return path.substr(0, path.size() - 1);
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }

 private:
  test::Scratch scratch_;
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("names of a run cannot break a page") {
  const std::string text = run_page(Run().page());
  CHECK(text.find("<h1>a &lt;b&gt; &amp; &quot;c&quot;</h1>") != std::string::npos);
  CHECK(text.find("<b> &") == std::string::npos);
}

TEST_CASE("every figure of the report stands on its page as it is") {
  const Run run;
  const std::string text = run_page(run.page());
  const auto all = Figures(run.directory()).all();
  REQUIRE(all.size() == 21);
  for (const auto& [path, value] : all) {
    INFO(path);
    CHECK(text.find("<td>" + escaped(path) + "</td><td>" + escaped(value) + "</td>") != std::string::npos);
  }
}

TEST_CASE("a page opens every element that it closes") {
  const std::string text = run_page(Run().page());
  for (const char* name : {"section", "div", "table", "details", "span", "p", "abbr", "h2"}) {
    INFO(name);
    const std::string tag = name;
    CHECK(count(text, "<" + tag + ">") + count(text, "<" + tag + " ") == count(text, "</" + tag + ">"));
  }
}

TEST_CASE("a page asks for nothing from elsewhere") {
  const std::string text = run_page(Run().page());
  for (const char* outside : {"http", "<script", "@import", "url("})
    CHECK(text.find(outside) == std::string::npos);
}

// 1.0 of 1.25 is 80%.
TEST_CASE("parts of a bar are as long as their share and a limit is marked") {
  CHECK(breakdown(Run().page().figures).find("width:80.000%") != std::string::npos);
  const std::string memory_bar = memory(Run().page().figures);
  CHECK(memory_bar.find("width:25.000%") != std::string::npos);  // 1 of 4 GB
  CHECK(memory_bar.find("class=\"limit\"") != std::string::npos);
}

TEST_CASE("two runs stand beside each other with their difference") {
  std::string slower = kEscapedReport;
  slower.replace(slower.find("1.25"), 4, "2.50");
  const Run a, b(slower);
  const std::string text = comparison_page(a.page(), b.page());
  CHECK(text.find("<td>step time</td><td>1.25 s</td><td>2.5 s</td><td>+100.0%</td>") != std::string::npos);
}

TEST_CASE("beside an imported profile only shares of time are compared") {
  const Run simulated, other(R"({"scenario": "p", "kind": "imported", "executor": "imported", "run_time_s": 3,
    "breakdown": {"by_kind": {"gemm": {"compute_s": 7.2}}}})");
  const auto by_kind = [&](const Run& b) {
    const std::string text = comparison_page(simulated.page(), b.page());
    const std::size_t at = text.find("Time by kind of op");
    return text.substr(at, text.find("Figures that differ", at) - at);
  };
  CHECK(by_kind(other).find(">B sums over all rows of a profile") != std::string::npos);
  CHECK(by_kind(other).find("B to A") == std::string::npos);
  CHECK(by_kind(simulated).find("B to A") != std::string::npos);
}

TEST_CASE("what is no run is refused in a sentence") {
  const Run empty("[1, 2]");
  CHECK_THROWS_WITH(empty.page(), Catch::EndsWith("report.json: expected a run's report, found an array"));
  CHECK_THROWS_AS(RunOnPage("/nowhere"), Error);
}

TEST_CASE("what NICs post is told in messages") {
  const Run run(R"({"kind": "collective", "network": {"tiers": [
      {"tier": "NIC posting", "ports": 4, "carried_messages": 2048, "busy_share": 0.1}]}})");
  CHECK(run_page(run.page()).find("<td>2048 msgs</td>") != std::string::npos);
}

TEST_CASE("a cluster's page begins with its effective time and asks for no detail of its timeline") {
  const Run run(R"({"kind": "cluster", "cluster": {
      "effective_time": {"mean": 0.9423, "p5": 0.9368, "p95": 0.9471}, "interruptions": {"mean": 428},
      "energy_j": {"mean": 3.6e12}}})");
  const std::string text = run_page(run.page());
  CHECK(text.find("<b>94.23%</b><span>effective time (93.68% to 94.71%)</span>") != std::string::npos);
  CHECK(text.find("<b>428</b><span>interruptions</span>") != std::string::npos);
  CHECK(text.find("<b>1000 MWh</b>") != std::string::npos);
  CHECK(text.find("/timeline/detail") == std::string::npos);
}

TEST_CASE("a step of several phases is told by all of them") {
  const Run run(R"({"kind": "training", "step_time_s": 2, "breakdown": {"compute_s": 1.5},
      "rl": {"step_time_s": 8, "rollout_s": 5, "training_s": 2, "sync_s": 1}})");
  const std::string text = run_page(run.page());
  const std::size_t whole = text.find("<b>8 s</b><span>step time, all phases</span>");
  const std::size_t alone = text.find("<b>2 s</b><span>step time, training alone</span>");
  CHECK(whole < alone);
  CHECK(alone != std::string::npos);
  CHECK(text.find("rollout 5 s (62.5%)") != std::string::npos);
}

TEST_CASE("a service's page has its money, its classes, its pools over time and what measured ones may be") {
  const Run run(R"({"kind": "serving", "requests": {"completed": 5}, "ttft_s": {"mean": 0.3},
      "cost": {"usd_per_hour": 47.2, "usd": 4.5, "usd_idle": 2, "joules_per_output_token": 15.9,
               "pools": {"decode": {"usd_per_hour_of_a_device": 2.95, "usd": 4.5, "joules": 3.6e6}}},
      "classes": {"chat": {"submitted": 5, "completed": 5, "slo_attainment": 0.8, "goal": {"ttft_s": 2},
                           "ttft_s": {"p50": 0.1, "p99": 3.5}}},
      "pools": {"decode": {"devices": 16, "instances": 1, "iterations": 9, "busy": 0.5,
                           "peak_blocks": 1, "blocks": 7}},
      "series": {"step_s": 2, "decode": {"waiting": [0, 0], "running": [1, 4], "blocks": [1, 18048]}},
      "uncertainty": {"figures": {"ttft_s": {"mean": {"low": 0.2, "high": 0.5, "rows": 9, "sources": 3,
                                                       "class": "serving"}}},
                      "outside": ["16 devices: the rows have at most 8"]}})");
  const std::string text = run_page(run.page());
  CHECK(text.find("<b>47.2 USD</b><span>price of an hour</span>") != std::string::npos);
  CHECK(text.find("<td>2.95 USD</td><td>4.5 USD</td>") != std::string::npos);
  CHECK(text.find("<td>100 ms / 3.5 s of 2 s</td>") != std::string::npos);
  // Of one replica, where the blocks over time are those of all.
  CHECK(text.find("blocks of a replica") != std::string::npos);
  CHECK(text.find("<td>1 of 7</td>") != std::string::npos);
  CHECK(text.find("<b>running</b> <span class=\"soft\">at most 4</span>") != std::string::npos);
  CHECK(text.find("<b>blocks</b> <span class=\"soft\">at most 18,048</span>") != std::string::npos);
  CHECK(text.find("<b>waiting</b>") == std::string::npos);  // nothing ever waited
  CHECK(text.find("ttft_s.mean</td><td>300 ms") == std::string::npos);
  CHECK(text.find(" (mean)</td><td>300 ms</td>") != std::string::npos);
  CHECK(text.find("<td>200 ms to 500 ms</td><td>9 rows of 3 sources, serving</td>") != std::string::npos);
  CHECK(text.find("Not covered by them: 16 devices") != std::string::npos);
}

TEST_CASE("a report whose parts are no objects is refused with the place") {
  const Run run(R"({"kind": "training", "breakdown": 5, "memory": [1]})");
  CHECK_THROWS_WITH(run.page(), Catch::EndsWith("report.json: /breakdown: expected an object, found 5"));
}

TEST_CASE("a page of queues says where the time of cards goes and shows its picture") {
  const Run run(R"({"kind": "cluster", "cluster": {
      "jobs": {"mean": 20}, "card_time": {"useful": {"mean": 0.75}, "too_few": {"mean": 0.25}},
      "queues": {"a": {"jobs": {"mean": 20}, "wait_p50_s": {"mean": 3600}, "slowdown_p50": {"mean": null}}},
      "shapes": {"qwen2.5-32b": {"card_hours": {"mean": 1234}, "pools": {"h": {"mean": 1}},
                                 "usd_per_million_tokens": null}}}})");
  std::ofstream(run.path("cluster.svg")) << "<svg>month</svg>";
  const std::string text = run_page(run.page());
  CHECK(text.find("<h2>Where the time of cards goes</h2>") != std::string::npos);
  CHECK(text.find("too few  (25.0%)") != std::string::npos);
  CHECK(text.find("<svg>month</svg>") != std::string::npos);
  CHECK(text.find("<td>1.0 h</td>") != std::string::npos);
  CHECK(text.find("<td>qwen2.5-32b</td><td>1,234</td><td>h 100%</td><td>-</td><td>-</td>") !=
        std::string::npos);
}

TEST_CASE("figures beyond those that a page shows are counted there") {
  std::string many = R"({"kind": "collective")";
  for (int i = 0; i < 3100; ++i) many += fmt::format(R"(, "x{}": {})", i, i);
  const Run run(many + "}");
  CHECK(run_page(run.page()).find("<td>and 101 more</td>") != std::string::npos);
}

TEST_CASE("a page of jobs says where the time of each goes") {
  const Run run(R"({"kind": "cluster", "cluster": {"jobs": {
      "a": {"time": {"productive_s": {"mean": 3600}, "queued_s": {"mean": 1200}}}}}})");
  const std::string text = run_page(run.page());
  CHECK(text.find("<p><b>a</b></p>") != std::string::npos);
  CHECK(text.find("productive 60 min (75.0%)") != std::string::npos);
  CHECK(text.find("<h2>Queues</h2>") == std::string::npos);
}

// ---- lanes ----

// One class that computes from 0 to 5 ms forward and from 5 to 10 ms backward, and sends from 6 to 9, of
// which it waits until 8.
Timeline timeline() {
  Timeline lanes;
  lanes.fragments = {"f"};
  lanes.class_ranks = {0};
  lanes.class_sizes = {1};
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    OpRow op;
    op.kind = OpKind::kGemm;
    op.phase = phase;
    op.index = static_cast<std::int32_t>(lanes.ops.size());
    lanes.ops.push_back(op);
  }
  OpRow send;
  send.kind = OpKind::kSend;
  send.lane = Lane::kSendForward;
  send.index = 2;
  lanes.ops.push_back(send);
  lanes.submissions = {{0, 0, 0, 0, 0}};
  lanes.spans = {{.op = 0, .start = 0_ms, .end = 5_ms},
                 {.op = 1, .start = 5_ms, .end = 10_ms},
                 {.op = 2, .lane = Lane::kSendForward, .start = 6_ms, .end = 9_ms, .work_start = 8_ms}};
  return lanes;
}

TEST_CASE("a picture of lanes has strokes where the spans are") {
  const test::Scratch scratch;
  save_timeline(timeline(), scratch.path("timeline.mtl"));
  const LanesPicture picture = lanes_picture(SpanColumns(scratch.path("timeline.mtl")));
  // 900 columns after 150 of names: halves of 450; 0.6 and 0.8 and 0.9 of it in the second row, 13 lower.
  CHECK(picture.svg.find("M150 6h450") != std::string::npos);
  CHECK(picture.svg.find("M600 6h450") != std::string::npos);
  CHECK(picture.svg.find("M690 19h180") != std::string::npos);
  CHECK(picture.svg.find("M870 19h90") != std::string::npos);
  CHECK(picture.caption.find("waiting for members") != std::string::npos);
}

TEST_CASE("lanes of ranks that compute nothing bear the names of the ranks") {
  const test::Scratch scratch;
  Timeline sends = timeline();
  sends.spans.erase(sends.spans.begin(), sends.spans.begin() + 2);
  save_timeline(sends, scratch.path("timeline.mtl"));
  CHECK(lanes_picture(SpanColumns(scratch.path("timeline.mtl"))).svg.find(">rank 0 send_forward<") !=
        std::string::npos);
  sends.class_sizes = {128};
  save_timeline(sends, scratch.path("timeline.mtl"));
  const std::string folded = lanes_picture(SpanColumns(scratch.path("timeline.mtl"))).svg;
  CHECK(folded.find(">ranks like 0 (x128)<") != std::string::npos);
  CHECK(folded.find(">send_forward<") != std::string::npos);
}

TEST_CASE("a run without spans has no picture of lanes") {
  const test::Scratch scratch;
  Timeline empty = timeline();
  empty.spans.clear();
  save_timeline(empty, scratch.path("timeline.mtl"));
  CHECK(lanes_picture(SpanColumns(scratch.path("timeline.mtl"))).svg.empty());
}

}  // namespace
}  // namespace moebius::viz
