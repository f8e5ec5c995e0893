// What distinguishes one measured op from another: a cost query that owns its rows. Which cores its kernel
// was chosen for (CostQuery::for_whole_chip) is not asked of a device: its library chooses.
#pragma once

#include <string>
#include <vector>

#include "workloads/cost/cost_source.h"

namespace moebius {

struct OpKey {
  OpKind kind = OpKind::kGemm;
  Shape shape;
  DType dtype = DType::kBf16, stored = DType::kBf16, summed = DType::kFp32;
  int cores = 0;                   // 0: all of the device
  std::vector<std::int32_t> rows;  // as of CostQuery, largest first: order does not count
  bool fused_quantise = false, hot = false;

  bool operator==(const OpKey&) const = default;
  CostQuery query() const;  // refers to this key
};

// `cores`: as the device at hand counts them.
OpKey key_of(const CostQuery& query, int cores);

// The fields of a JSON object, without brackets: equal keys give equal text. Fields of the shape that are
// zero are left out.
std::string to_text(const OpKey& key);

// The size that routing changes: k of a grouped weight gradient, else m.
std::int64_t& routed_rows(OpKey& key);

}  // namespace moebius
