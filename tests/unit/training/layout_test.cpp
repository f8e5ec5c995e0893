#include <catch2/catch.hpp>

#include "workloads/training/plan.h"

using namespace moebius;

namespace {

TrainingPlan sixteen_ranks() {
  TrainingPlan plan;  // tp 2 x cp 1 x dp 4 x pp 2, experts over 4 consecutive ranks
  plan.tp = 2;
  plan.dp = 4;
  plan.pp = 2;
  plan.ep = 4;
  return plan;
}

}  // namespace

TEST_CASE("a folded layout has one class for each pipeline stage") {
  const Layout layout = make_layout(sixteen_ranks());
  REQUIRE(layout.classes.size() == 2);
  CHECK(layout.classes[1].representative() == 8);
  CHECK(layout.classes[1].size() == 8);
  CHECK(layout.classes[0].group(GroupRole::kExpert).num_classes == 1);
  CHECK(layout.classes[0].group(GroupRole::kNext).num_classes == 2);
}

TEST_CASE("an unfolded layout has one class for each rank, and groups by tensor, data, pipeline order") {
  TrainingPlan plan = sixteen_ranks();
  plan.fold = false;
  const Layout layout = make_layout(plan);
  REQUIRE(layout.classes.size() == 16);
  const RankClass& rank = layout.classes[13];  // stage 1, local 5: tensor index 1, data index 2
  CHECK(rank.group(GroupRole::kTensor).ranks == std::vector<std::int32_t>{12, 13});
  CHECK(rank.group(GroupRole::kTensor).my_index == 1);
  CHECK(rank.group(GroupRole::kData).ranks == std::vector<std::int32_t>{9, 11, 13, 15});
  CHECK(rank.group(GroupRole::kData).my_index == 2);
  CHECK(rank.group(GroupRole::kExpert).ranks == std::vector<std::int32_t>{12, 13, 14, 15});
  CHECK(rank.group(GroupRole::kExpertData).ranks == std::vector<std::int32_t>{9, 13});
  CHECK(rank.group(GroupRole::kPrevious).ranks == std::vector<std::int32_t>{5, 13});
  CHECK(rank.group(GroupRole::kNext).ranks.empty());
  CHECK(rank.group(GroupRole::kTied).ranks == std::vector<std::int32_t>{5, 13});
  CHECK(rank.group(GroupRole::kExpert).num_classes == 4);
}

TEST_CASE("context-parallel ranks stand between tensor and data ranks") {
  TrainingPlan plan;
  plan.tp = 2;
  plan.cp = 2;
  plan.dp = 2;
  plan.fold = false;
  const Layout layout = make_layout(plan);
  CHECK(layout.classes[3].group(GroupRole::kContext).ranks == std::vector<std::int32_t>{1, 3});
  CHECK(layout.classes[6].group(GroupRole::kContext).ranks == std::vector<std::int32_t>{4, 6});
  CHECK(layout.classes[6].group(GroupRole::kData).ranks == std::vector<std::int32_t>{0, 2, 4, 6});
}

TEST_CASE("ranks of a stage share the scales of delayed scaling, or those of the same tokens alone") {
  TrainingPlan plan = sixteen_ranks();
  plan.fold = false;
  CHECK(make_layout(plan).classes[13].group(GroupRole::kScales).ranks.empty());
  plan.gemm = DType::kFp8;
  plan.scaling = Scaling::kHistory;
  CHECK(make_layout(plan).classes[13].group(GroupRole::kScales).ranks ==
        std::vector<std::int32_t>{8, 9, 10, 11, 12, 13, 14, 15});
  plan.history_of_tensor_ranks = true;
  CHECK(make_layout(plan).classes[13].group(GroupRole::kScales).ranks == std::vector<std::int32_t>{12, 13});
}
