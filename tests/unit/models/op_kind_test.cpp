#include "models/op_kind.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace moebius {

TEST_CASE("every op kind has a name of its own") {
  std::set<std::string> names;
  for (int kind = 0; kind < kNumOpKinds; ++kind) {
    const std::string name(to_string(static_cast<OpKind>(kind)));
    CHECK(name != "unknown");
    CHECK(names.insert(name).second);
  }
  CHECK(to_string(OpKind::kGroupedGemmDgrad) == "grouped_gemm_dgrad");
}

TEST_CASE("communication starts at dispatch") {
  CHECK(is_communication(OpKind::kDispatch));
  CHECK(is_communication(OpKind::kRecv));
  CHECK_FALSE(is_communication(OpKind::kAdam));
}

}  // namespace moebius
