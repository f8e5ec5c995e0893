#include "workloads/cost/op_key.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moebius {

CostQuery OpKey::query() const {
  return {.kind = kind,
          .shape = shape,
          .dtype = dtype,
          .cores = cores,
          .rows = rows,
          .stored = stored == dtype ? std::optional<DType>() : stored,
          .fused_quantise = fused_quantise,
          .hot = hot,
          .summed = summed};
}

OpKey key_of(const CostQuery& query, int cores) {
  OpKey key{.kind = query.kind,
            .shape = query.shape,
            .dtype = query.dtype,
            .stored = stored_dtype(query),
            .summed = query.summed,
            .cores = cores,
            .rows = {query.rows.begin(), query.rows.end()},
            .fused_quantise = query.fused_quantise,
            .hot = query.hot};
  std::sort(key.rows.begin(), key.rows.end(), std::greater<>());
  return key;
}

std::string to_text(const OpKey& key) {
  const Shape& s = key.shape;
  std::string text = fmt::format(R"("kind": "{}", "dtype": "{}")", to_string(key.kind), to_string(key.dtype));
  const auto add = [&](std::string_view name, std::int64_t value) {
    if (value != 0) text += fmt::format(R"(, "{}": {})", name, value);
  };
  add("m", s.m), add("n", s.n), add("k", s.k), add("groups", s.groups), add("heads", s.heads);
  add("kv_heads", s.kv_heads), add("head_dim", s.head_dim), add("v_dim", s.v_dim), add("kv", s.kv);
  add("window", s.window), add("cores", key.cores);
  if (key.stored != key.dtype) text += fmt::format(R"(, "stored": "{}")", to_string(key.stored));
  if (key.summed != DType::kFp32) text += fmt::format(R"(, "summed": "{}")", to_string(key.summed));
  if (!key.rows.empty()) text += fmt::format(R"(, "rows": [{}])", fmt::join(key.rows, ", "));
  if (key.fused_quantise) text += R"(, "fused_quantise": true)";
  if (key.hot) text += R"(, "hot": true)";
  return text;
}

std::int64_t& routed_rows(OpKey& key) {
  return key.kind == OpKind::kGroupedGemmWgrad ? key.shape.k : key.shape.m;
}

}  // namespace moebius
