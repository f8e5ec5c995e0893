#include "real/bench/op_text.h"

#include <fmt/format.h>

namespace moebius {

std::string describe(const CostQuery& query) {
  const Shape& s = query.shape;
  std::string text = fmt::format("{} of m {}", to_string(query.kind), s.m);
  const auto add = [&](std::string_view name, std::int64_t value) {
    if (value != 0) text += fmt::format(", {} {}", name, value);
  };
  add("n", s.n), add("k", s.k), add("groups", s.groups), add("heads", s.heads), add("head_dim", s.head_dim);
  add("kv", s.kv), add("window", s.window);
  return fmt::format("{} in {}", text, to_string(query.dtype));
}

}  // namespace moebius
