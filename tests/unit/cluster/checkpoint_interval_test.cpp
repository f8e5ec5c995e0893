// How often jobs save, and which checkpoints stay.
#include <algorithm>
#include <cmath>

#include "tests/unit/cluster/one_job.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using namespace literals;
using one_job::only_job;
using one_job::plan;
using one_job::sum;

TEST_CASE("of old checkpoints those stay that are far enough apart however often a job was stopped") {
  ClusterPlan often = plan();
  often.checkpoint.interval = {kHour.ns / 60};
  often.checkpoint.keep_every = {10 * kHour.ns};
  often.checkpoint.storage = {6e12};
  often.detection.crash = often.detection.silent = {};
  often.recovery = {};
  for (int i = 1; i < 590; ++i) often.trace.push_back({{i * kHour.ns / 6}, 0, 1});
  often.faults.push_back({.name = "wrong", .effect = FailureEffect::kSilent, .nodes = 0});
  often.detection.recall = 0;
  often.detection.silent.mean = {50 * kHour.ns};
  often.trace.push_back({{46 * kHour.ns + kHour.ns / 60}, 0, 2});
  std::ranges::sort(often.trace, {}, [](const FailureInTrace& fault) { return fault.time; });
  const JobCourse course = only_job(often);
  CHECK(sum(course) == often.duration);
  // Found at 96 h: the last one kept from before 46 h is at most 10 h older.
  CHECK(course.of(TimeItem::kRecomputed).seconds() / 3600 > 49);
  CHECK(course.of(TimeItem::kRecomputed).seconds() / 3600 < 62);
}

TEST_CASE("the published intervals") {
  CHECK(young_interval(60_s, 7200_s).seconds() == Approx(929.516).epsilon(1e-5));
  const double root = std::sqrt(60.0 / 14400);
  CHECK(daly_interval(60_s, 7200_s).seconds() ==
        Approx(929.516 * (1 + root / 3 + root * root / 9) - 60).epsilon(1e-5));
  CHECK(daly_interval(60_s, 20_s) == 20_s);
}

// Where recovery takes nothing and faults are far apart beside a checkpoint, what is lost is least near
// Young's interval: over 40 courses each, the best of a row of intervals 10% apart.
TEST_CASE("the best interval is Young's where its assumptions hold") {
  ClusterPlan many = plan();
  many.nodes = 104;
  many.jobs[0].nodes = 100;
  many.jobs[0].state = {100e9};  // 10 s
  many.duration = {2000 * kHour.ns};
  many.faults = {{.name = "f", .per_hour = 0.002, .nodes = 0}};  // one in 5 h
  many.detection = {};
  many.recovery = {};
  const double young = young_interval(10_s, {5 * kHour.ns}).seconds();
  double best = 0, most = 0;
  for (int step = -8; step <= 8; ++step) {
    many.checkpoint.interval = time_from_seconds(young * std::pow(1.1, step));
    double productive = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
      productive += only_job(many, seed).of(TimeItem::kProductive).seconds();
    if (productive > most) most = productive, best = many.checkpoint.interval.seconds();
  }
  CHECK(best / young == Approx(1).margin(0.1));
}

}  // namespace
}  // namespace moebius
