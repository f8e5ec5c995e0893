#include "workloads/schedule/timeline.h"

namespace moebius {

std::string payload_text(const OpRow& op) {
  const bool row = op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine;
  return to_text(Bytes{op.payload}) + (row ? " a token" : "");
}

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::kMeasured:
      return "measured";
    case Origin::kInterpolated:
      return "interpolated";
    case Origin::kExtrapolated:
      return "extrapolated";
    case Origin::kAnalytic:
      return "analytic";
    case Origin::kRoofline:
      return "roofline";
    case Origin::kNetwork:
      return "network";
    case Origin::kExecuted:
      return "executed";
  }
  return "unknown";
}

}  // namespace moebius
