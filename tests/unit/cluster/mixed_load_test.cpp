// A load of many jobs is what it was asked to be, and the same for the same seed.
#include "workloads/cluster/queue/mixed_load.h"

#include <cmath>

#include <catch2/catch.hpp>

using namespace moebius;

namespace {

const Time kMonth{30 * 24 * kHour.ns};

QueuePlan plan_of(int jobs) {
  QueuePlan plan;
  plan.pools = {{.name = "a", .nodes = 100}, {.name = "b", .nodes = 25}};
  plan.queues = {{.name = "all", .quota = 1}};
  JobShape train{
      .name = "train", .scenario = "", .sizes = {64, 128, 256}, .weights = {1, 2, 1}, .pools = {0}};
  train.jobs = 3;
  train.card_time = 7;
  JobShape serve{.name = "serve",
                 .kind = JobClass::kInference,
                 .scenario = "",
                 .sizes = {8},
                 .weights = {1},
                 .pools = {0}};
  serve.card_time = 3;
  plan.shapes = {train, serve};
  plan.load.jobs = jobs;
  return plan;
}

}  // namespace

// Of 20,000 draws some are beyond four standard deviations: exp(16) hours are a thousand years.
TEST_CASE("lengths that are drawn far apart, and overstated, fit into clocks") {
  QueuePlan plan = plan_of(20'000);
  plan.shapes[0].sigma = 4;
  plan.load.overestimate = 100;
  for (const Time duration :
       {kMonth, Time{999'993'600'000'000'000}}) {  // the longest that a scenario may say
    for (const DrawnJob& job : draw_load(plan, duration, 7)) {
      REQUIRE(job.work.ns > 0);
      REQUIRE(job.estimate >= job.work);
      REQUIRE(job.work.seconds() <= 4 * duration.seconds());
    }
  }
}

// At midnight with the peak at noon the rate is 0, and a second later next to that.
TEST_CASE("arrivals are drawn within a time in which next to none come") {
  QueuePlan plan = plan_of(40);
  plan.load.day_depth = 1;
  plan.load.peak_hour = 12;
  plan.load.backlog = 0;
  for (const Time duration : {Time{1}, Time{1'000'000'000}, Time{60'000'000'000}}) {
    for (const DrawnJob& job : draw_load(plan, duration, 7)) {
      REQUIRE(job.arrival <= duration);
      REQUIRE(job.work <= duration * 4);
    }
  }
}

TEST_CASE("a mixed load has the jobs and asks for the card time that it was told") {
  const QueuePlan plan = plan_of(400);
  const std::vector<DrawnJob> jobs = draw_load(plan, kMonth, 7);
  REQUIRE(jobs.size() == 400);
  // Shares of the jobs 3 to 1.
  CHECK(std::count_if(jobs.begin(), jobs.end(), [](const DrawnJob& job) { return job.shape == 0; }) == 300);
  // 1.1 x 125 nodes x 8 cards x 30 days; the bisection ends within 1e-9, times are whole nanoseconds.
  const double whole = 1.1 * 1000 * kMonth.seconds();
  CHECK(offered_card_seconds(plan, jobs, kMonth) == Approx(whole).epsilon(1e-6));
  std::vector<DrawnJob> training;
  for (const DrawnJob& job : jobs)
    if (job.shape == 0) training.push_back(job);
  CHECK(offered_card_seconds(plan, training, kMonth) == Approx(0.7 * whole).epsilon(1e-6));
}

TEST_CASE("the same seed draws the same load and another seed another") {
  const QueuePlan plan = plan_of(50);
  const std::vector<DrawnJob> first = draw_load(plan, kMonth, 3), again = draw_load(plan, kMonth, 3);
  REQUIRE(first.size() == again.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].arrival == again[i].arrival);
    CHECK(first[i].work == again[i].work);
    CHECK(first[i].key == again[i].key);
  }
  CHECK(draw_load(plan, kMonth, 4).back().arrival != first.back().arrival);
}

TEST_CASE("jobs arrive in order and more of them by day than by night") {
  QueuePlan plan = plan_of(4000);
  plan.load.day_depth = 1;
  plan.load.weekend = 1;
  plan.load.backlog = 0;
  const std::vector<DrawnJob> jobs = draw_load(plan, kMonth, 11);
  int day = 0;
  Time before;
  for (const DrawnJob& job : jobs) {
    CHECK(job.arrival >= before);
    before = job.arrival;
    const double hour = std::fmod(job.arrival.seconds() / 3600, 24);
    day += hour >= 9 && hour < 21 ? 1 : 0;  // the twelve hours about the peak at 15
  }
  // Of a rate 1 + cos the half about the peak holds 1/2 + 1/pi = 0.818; the standard error is 0.006.
  CHECK(day / 4000.0 == Approx(0.818).margin(0.025));
}

TEST_CASE("a service wants its peak by day and its night's share at night") {
  QueuePlan plan = plan_of(10);
  plan.load.noise = 0;
  plan.shapes[1].night = 0.25;
  DrawnJob service;
  service.shape = 1;
  service.replicas = 40;
  CHECK(wanted_replicas(plan, service, Time{15 * kHour.ns}) == 40);
  CHECK(wanted_replicas(plan, service, Time{3 * kHour.ns}) == 10);
  // Six hours after the peak it stands in the middle: (1 + 0.25) / 2 of 40.
  CHECK(wanted_replicas(plan, service, Time{21 * kHour.ns}) == Approx(25).margin(1));
}

TEST_CASE("a shape without a share of the jobs has none and asks for nothing") {
  QueuePlan plan = plan_of(20);
  plan.shapes[1].jobs = 0;
  const std::vector<DrawnJob> jobs = draw_load(plan, kMonth, 7);
  CHECK(jobs.size() == 20);
  for (const DrawnJob& job : jobs) CHECK(job.shape == 0);
  CHECK(offered_card_seconds(plan, jobs, kMonth) == Approx(1.1 * 1000 * kMonth.seconds()).epsilon(1e-6));
}

// Each of the small ones gets the one job that it has to have, and all are as many as were asked for.
TEST_CASE("there are no more jobs than were asked for however small the shares of some") {
  QueuePlan plan = plan_of(20);
  for (int i = 0; i < 4; ++i) plan.shapes.push_back(plan.shapes[0]);
  for (std::size_t s = 1; s < plan.shapes.size(); ++s) plan.shapes[s].jobs = 0.01;
  CHECK(draw_load(plan, kMonth, 7).size() == 20);
}
