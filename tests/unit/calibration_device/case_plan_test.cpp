// What is measured covers what schedules ask.
#include "workloads/calibration/device/case_plan.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "tests/process.h"
#include "tests/unit/calibration_device/fake_bench.h"
#include "workloads/calibration/device/calibrate_device.h"
#include "workloads/cost/cost_source.h"
#include "workloads/job.h"
#include "workloads/schedule/executor.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using test::Scratch;

const std::string kSmoke = std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/smoke/";

// The compute ops of all that a scenario submits, each shape once.
std::vector<CostQuery> queries_of(const std::string& file, const std::vector<std::string>& sets) {
  const Library library("");
  Job job = read_job(file, {.sets = sets, .seed = {}}, library);
  std::map<std::string, CostQuery> queries;
  Workload& workload = job.workload();
  for (std::int32_t sequence = 0; !workload.done(); ++sequence) {
    const auto submission = workload.next({});
    if (!submission) break;
    for (const Op& op : submission->fragment->ops) {
      if (is_communication(op.kind)) continue;
      const Shape& s = op.shape;
      queries[fmt::format("{} {} {} {} {} {} {} {}", to_string(op.kind), to_string(op.dtype), s.m, s.n, s.k,
                          s.groups, s.heads, s.head_dim)] = {
          .kind = op.kind, .shape = s, .dtype = op.dtype, .cores = 1};
    }
    workload.completed({submission->sequence, {}});
  }
  std::vector<CostQuery> all;
  for (const auto& [text, query] : queries) all.push_back(query);
  return all;
}

// What answers for a device that was measured by a plan of these sizes.
std::unique_ptr<CostSource> calibrated(const CaseSizes& sizes, const Scratch& scratch) {
  std::filesystem::create_directories(scratch.path("profiles"));
  DeviceUnderTest device = made_up_device(std::make_unique<FakeBench>());
  device.sizes = sizes;
  const CalibrationReport report =
      calibrate_device(device, {.out = scratch.path("profiles/made-up.json"), .budget = 1e6});
  return make_cost_source(report.profile.reference, scratch.path(""));
}

// All origins that the ops of a scenario come from; names the ops from others than tables.
std::set<Origin> origins_of(const CostSource& source, const std::vector<CostQuery>& queries) {
  std::set<Origin> origins;
  for (const CostQuery& query : queries) {
    const Origin origin = source.cost(query).origin;
    const Shape& s = query.shape;
    if (origin != Origin::kMeasured && origin != Origin::kInterpolated)
      UNSCOPED_INFO(to_string(query.kind) << " " << to_string(query.dtype) << " m " << s.m << " n " << s.n
                                          << " k " << s.k << " groups " << s.groups << " heads " << s.heads
                                          << " head_dim " << s.head_dim << ": " << to_string(origin));
    origins.insert(origin);
  }
  return origins;
}

TEST_CASE("the host's tables tell every op of the small scenarios between their points, none beyond") {
  const Scratch scratch;
  const auto source = calibrated(host_case_sizes(), scratch);
  for (const char* file : {"moe-layer.json", "moe-4-layer.json"})
    for (const char* gemm : {"bf16", "fp8"}) {
      INFO(file << " in " << gemm);
      const auto queries = queries_of(kSmoke + file, {std::string("/plan/precision/gemm=") + gemm});
      REQUIRE(queries.size() > 50);
      for (const Origin origin : origins_of(*source, queries))
        CHECK((origin == Origin::kInterpolated || origin == Origin::kMeasured));
    }
}

TEST_CASE("a GPU's tables know every kind and type of op of the large scenarios") {
  const CasePlan plan = make_case_plan(gpu_case_sizes());
  std::set<std::pair<std::string, DType>> known;
  for (const ProfileTable& table : plan.families) known.insert({table.kinds.front(), table.dtype});
  for (const char* file : {"moe-32-h800.json", "moe-64-h800.json"})
    for (const CostQuery& query : queries_of(kSmoke + file, {})) {
      INFO(to_string(query.kind) << " " << to_string(query.dtype));
      CHECK(known.contains({std::string(to_string(query.kind)), query.dtype}));
    }
}

bool is_of_serving(OpKind kind) {
  return kind >= OpKind::kCacheAppend && kind <= OpKind::kPlaceExperts;
}

TEST_CASE("every compute kind of training has a family, and every case a name of its own") {
  for (const CaseSizes& sizes : {host_case_sizes(), gpu_case_sizes()}) {
    const CasePlan plan = make_case_plan(sizes);
    std::set<std::string> kinds, names;
    for (const ProfileTable& table : plan.families) kinds.insert(table.kinds.front());
    for (int i = 0; i < kNumOpKinds; ++i)
      if (const auto kind = static_cast<OpKind>(i); !is_communication(kind) && !is_of_serving(kind))
        CHECK(kinds.contains(std::string(to_string(kind))));
    for (const DeviceCase& one : plan.cases) CHECK(names.insert(one.text).second);
  }
}

TEST_CASE("what is measured first spans every axis to its ends") {
  const CasePlan plan = make_case_plan(host_case_sizes());
  std::map<std::pair<int, std::size_t>, std::set<double>> first, all;
  for (const DeviceCase& one : plan.cases)
    for (std::size_t axis = 0; axis < one.at.size(); ++axis) {
      if (one.is_test) continue;
      all[{one.family, axis}].insert(one.at[axis]);
      if (one.rank == 0) first[{one.family, axis}].insert(one.at[axis]);
    }
  for (const auto& [axis, points] : all) {
    INFO(plan.families[static_cast<std::size_t>(axis.first)].name);
    REQUIRE(first.contains(axis));
    CHECK(*first[axis].begin() == *points.begin());
    CHECK(*first[axis].rbegin() == *points.rbegin());
  }
}

TEST_CASE("what is measured in both states of the caches asks the same shapes of both") {
  const CasePlan plan = make_case_plan(host_case_sizes());
  std::map<bool, std::multiset<std::string>> shapes;
  for (const DeviceCase& one : plan.cases)
    if (!one.is_test)
      shapes[plan.query(one, 1).hot].insert(fmt::format("{} {} {} {} {}", to_string(plan.query(one, 1).kind),
                                                        one.shape.m, one.shape.n, one.shape.k,
                                                        one.shape.groups));
  CHECK(shapes[true].size() > 2000);
  CHECK(shapes[true] == shapes[false]);
}

TEST_CASE("another plan has another number") {
  CaseSizes sizes = host_case_sizes();
  const std::uint64_t before = make_case_plan(sizes).hash();
  CHECK(make_case_plan(sizes).hash() == before);
  sizes.widths.back() *= 2;
  CHECK(make_case_plan(sizes).hash() != before);
}

}  // namespace
}  // namespace moebius
