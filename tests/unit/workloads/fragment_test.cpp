#include <functional>

#include <catch2/catch.hpp>

#include "small_schedule.h"

using namespace moebius;

namespace {

std::string fault_after(const std::function<void(Fragment&)>& change) {
  Fragment fragment = small_fragment();
  change(fragment);
  return find_fault(fragment);
}

std::uint64_t hash_after(const std::function<void(Fragment&)>& change) {
  Fragment fragment = small_fragment();
  change(fragment);
  return freeze(std::move(fragment))->hash;
}

}  // namespace

TEST_CASE("a sound fragment has no fault") {
  REQUIRE(find_fault(small_fragment()) == "");
}

TEST_CASE("the first broken rule of a fragment is told with its values") {
  REQUIRE(fault_after([](Fragment& f) { f.routes[0] = nullptr; }) == "route 0 is empty");
  REQUIRE(fault_after([](Fragment& f) { f.tensors[2].rows = 0; }) == "tensor 2: 0 rows, 32 columns");
  REQUIRE(fault_after([](Fragment& f) { f.tensors[4].first_expert = -2; }) ==
          "tensor 4: negative place: experts 2 from -2, row 0, column 0");
  REQUIRE(fault_after([](Fragment& f) { f.tensors[4].key = 1; }) ==
          "tensor 4: key 1 names another tensor of scope rank");
  REQUIRE(fault_after([](Fragment& f) { f.ops[3].num_dependencies = 2; }) ==
          "op 3 (combine): dependencies 2+2 of 3");
  REQUIRE(fault_after([](Fragment& f) { f.dependencies[1] = 2; }) == "op 2 (grouped_gemm): depends on op 2");
  REQUIRE(fault_after([](Fragment& f) { f.dependencies[0] = -1; }) == "op 1 (dispatch): depends on op -1");
  REQUIRE(fault_after([](Fragment& f) { f.ops[3].first_tensor = 9; }) ==
          "op 3 (combine): operands 9+2 of 10");
  REQUIRE(fault_after([](Fragment& f) { f.operands[1] = 7; }) == "op 0 (gemm): operand 1 is tensor 7 of 7");
  REQUIRE(fault_after([](Fragment& f) { f.ops[2].route = 1; }) == "op 2 (grouped_gemm): route 1 of 1");
  REQUIRE(fault_after([](Fragment& f) { f.ops[0].shape.k = -16; }) == "op 0 (gemm): a size is -16");
  REQUIRE(fault_after([](Fragment& f) { f.ops[0].shape.m = 0; }) == "op 0 (gemm): no rows");
  REQUIRE(fault_after([](Fragment& f) { f.ops[0].group = GroupRole::kData; }) ==
          "op 0 (gemm): computes in group data");
  REQUIRE(fault_after([](Fragment& f) { f.ops[0].payload = {5}; }) ==
          "op 0 (gemm): computes, but sends 5 bytes");
  REQUIRE(fault_after([](Fragment& f) { f.ops[1].group = GroupRole::kNone; }) == "op 1 (dispatch): no group");
  REQUIRE(fault_after([](Fragment& f) { f.ops[1].payload = {0}; }) == "op 1 (dispatch): payload of 0 bytes");
  REQUIRE(fault_after([](Fragment& f) { f.ops[1].units = -20; }) == "op 1 (dispatch): holds -20 cores");
  REQUIRE(fault_after([](Fragment& f) { f.ops[1].route = -1; }) == "op 1 (dispatch): no route");
  REQUIRE(fault_after([](Fragment& f) { f.ops[3].match = 7; }) ==
          "op 3 (combine): match 7 is taken in group expert");
  REQUIRE(fault_after([](Fragment& f) { f.tensors[2].scaling = Scaling::kTensor; }) ==
          "tensor 2: one scale for the tensor, but of bf16");
  REQUIRE(fault_after([](Fragment& f) {
            f.tensors[2].dtype = DType::kFp8;
            f.tensors[2].scaling = Scaling::kTensor;
          }) == "op 1 (dispatch): carries tensor 2, whose scale stays with its rank");
}

TEST_CASE("one scale for an FP8 weight shows in its bytes and its line and changes the hash") {
  // Two experts of 32 x 32: one byte an element, and 4 for the scale of an expert.
  Fragment fragment = small_fragment();
  fragment.tensors[4].dtype = DType::kFp8;
  const std::uint64_t blocks = freeze(fragment)->hash;
  fragment.tensors[4].scaling = Scaling::kTensor;
  const FragmentPtr whole = freeze(fragment);
  CHECK(whole->tensors[4].bytes().value == 2 * (32 * 32 + 4));
  CHECK(whole->hash != blocks);
  CHECK(dump(*whole).find("fp8 32x32 layer=1 key=2 experts=2 from=0 init=0.25 scaling=tensor\n") !=
        std::string::npos);
}

TEST_CASE("what is read must have been written, or outlive the fragment") {
  REQUIRE(fault_after([](Fragment& f) { f.tensors[0].scope = Scope::kFragment; }) ==
          "op 0 (gemm): reads tensor 0 (input), which nothing has written");
}

TEST_CASE("who reads a tensor waits for its writer, by its lane or by a dependency") {
  // The dispatch on the expert lane loses its dependency on the gemm of the compute lane.
  REQUIRE(fault_after([](Fragment& f) { f.ops[1].num_dependencies = 0; }) ==
          "op 1 (dispatch): reads tensor 2 without waiting for op 0, which writes it");
  // On the compute lane the order of the lane is enough.
  REQUIRE(fault_after([](Fragment& f) {
            for (Op& op : f.ops) op.lane = Lane::kCompute, op.num_dependencies = 0;
          }) == "");
  // Through others: the combine reads what the gemm wrote; it waits for op 2, which waits for op 1, which
  // waits for it.
  REQUIRE(fault_after([](Fragment& f) { f.operands[8] = 2; }) == "");
}

TEST_CASE("the same match in two groups is two meetings") {
  REQUIRE(fault_after([](Fragment& f) { f.ops[3].match = 7, f.ops[3].group = GroupRole::kData; }) == "");
}

TEST_CASE("equal fragments have equal hashes, and every change of content changes it") {
  const std::uint64_t hash = freeze(small_fragment())->hash;
  REQUIRE(freeze(small_fragment())->hash == hash);
  const std::vector<std::function<void(Fragment&)>> changes = {
      [](Fragment& f) { f.name = "backward"; },
      [](Fragment& f) { f.phase = Phase::kWeight; },
      [](Fragment& f) { f.ops[0].kind = OpKind::kGemmDgrad; },
      [](Fragment& f) { f.ops[0].dtype = DType::kFp8; },
      [](Fragment& f) { f.ops[0].phase = Phase::kBackward; },
      [](Fragment& f) { f.ops[0].role = Role::kQkv; },
      [](Fragment& f) { f.ops[0].layer = 2; },
      [](Fragment& f) { f.ops[0].units = -20; },
      [](Fragment& f) { f.ops[0].scale = 2; },
      [](Fragment& f) { f.ops[0].shape.m = 9; },
      [](Fragment& f) { f.ops[0].shape.window = 1; },
      [](Fragment& f) { f.ops[1].algorithm = Algorithm::kRing; },
      [](Fragment& f) { f.ops[1].match = 9; },
      [](Fragment& f) { f.ops[1].payload = {65}; },
      [](Fragment& f) { f.tensors[1].dtype = DType::kFp32; },
      [](Fragment& f) { f.tensors[1].memory = MemoryKind::kGradients; },
      [](Fragment& f) { f.tensors[1].key = 3; },
      [](Fragment& f) { f.tensors[1].first_row = 32; },
      [](Fragment& f) { f.tensors[1].init = 0.5; },
      [](Fragment& f) { f.operands[3] = 0; },
      [](Fragment& f) { f.dependencies[2] = 1, f.operands[8] = 3; },
      [](Fragment& f) {
        RouteSpec spec = small_route();
        spec.seed = 2;
        f.routes[0] = std::make_shared<const Route>(spec);
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    REQUIRE(hash_after(changes[i]) != hash);
  }
}

TEST_CASE("equal fragments dump to equal text, and every line says what defines an op") {
  const FragmentPtr fragment = freeze(small_fragment());
  const std::string text = dump(*fragment);
  REQUIRE(text == dump(*freeze(small_fragment())));
  REQUIRE(text.find("op 1 dispatch bf16 lane=expert_comm phase=forward role=experts layer=1 m=8 n=32 route=0 "
                    "group=expert match=7 payload=64 in=o#2 out=experts#3 after=0\n") != std::string::npos);
  REQUIRE(
      text.find("tensor expert_down#4 rank weights bf16 32x32 layer=1 key=2 experts=2 from=0 init=0.25\n") !=
      std::string::npos);
}

TEST_CASE("a submission dumps to one line that names its fragment by hash") {
  Submission submission{
      .fragment = freeze(small_fragment()), .sequence = 3, .rank_class = 1, .microbatch = 2, .after = {0, 1}};
  const std::string line = dump(submission);
  REQUIRE(line.starts_with("submit 3 \"forward\" hash="));
  REQUIRE(line.ends_with(" class=1 step=0 microbatch=2 after=0,1\n"));
}

TEST_CASE("what is captured is said of every op, and a graph begins with its first") {
  REQUIRE(fault_after([](Fragment& f) { f.captured.resize(1); }) ==
          "1 of 4 ops are said to be captured or not");
  REQUIRE(fault_after([](Fragment& f) {
            f.captured.resize(4);
            f.captured[1].first = 2;
          }) == "op 1 is of a graph that begins with op 2");
  const auto captured = [](Fragment& f) {
    f.captured.resize(4);
    f.captured[1].first = f.captured[2].first = 1;
  };
  REQUIRE(fault_after(captured) == "");
  REQUIRE(hash_after(captured) != hash_after([](Fragment&) {}));
}
