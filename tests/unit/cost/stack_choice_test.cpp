// Kernels of one stack, and of another one for a kind and type.
#include "workloads/cost/stack_choice.h"

#include <catch2/catch.hpp>

namespace moebius {
namespace {

ProfileTable table_of(const char* kind, DType dtype) {
  ProfileTable table;
  table.kinds = {kind};
  table.dtype = dtype;
  return table;
}

}  // namespace

TEST_CASE("kernels are the base's but for the kind and type that another stack is named for") {
  const StackChoice choice = stack_choice("a-1; gemm/fp8=b-2; grouped_gemm/fp4=c-3");
  CHECK(choice.of(table_of("gemm", DType::kFp8)) == "b-2");
  CHECK(choice.of(table_of("gemm", DType::kBf16)) == "a-1");
  CHECK(choice.of(table_of("grouped_gemm", DType::kFp4)) == "c-3");
  CHECK(choice.named() == std::vector<std::string>{"a-1", "b-2", "c-3"});
}

TEST_CASE("one stack alone is the stack of all kernels and none means any") {
  CHECK(stack_choice("a-1").of(table_of("gemm", DType::kFp8)) == "a-1");
  CHECK(stack_choice("").of(table_of("gemm", DType::kFp8)).empty());
}

TEST_CASE("an exception that does not say kind and type and stack is refused") {
  CHECK_THROWS_WITH(stack_choice("a-1; gemm=b-2"),
                    Catch::Contains("expected KIND/DTYPE=STACK") && Catch::Contains("found \"gemm=b-2\""));
}

}  // namespace moebius
