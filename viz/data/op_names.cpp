#include "viz/data/op_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace moebius::viz {
namespace {

std::string own_class_name(const Timeline& tables, std::int32_t rank_class) {
  const std::int32_t rank = tables.class_ranks[rank_class], size = tables.class_sizes[rank_class];
  return size == 1 ? fmt::format("rank {}", rank) : fmt::format("ranks like {} (x{})", rank, size);
}

}  // namespace

std::string op_name(const OpRow& op) {
  std::string name(to_string(op.kind));
  if (op.role != Role::kNone && to_string(op.role) != name) name += fmt::format(" {}", to_string(op.role));
  if (op.layer >= 0) name += fmt::format(" L{}", op.layer);
  return name;
}

bool of_submissions(const Timeline& tables) {
  const std::pair<std::string, std::string> fact{"timeline_detail", "steps"};
  return std::find(tables.facts.begin(), tables.facts.end(), fact) != tables.facts.end();
}

bool is_imported(const Timeline& tables) {
  const std::pair<std::string, std::string> fact{"executor", "imported"};
  return std::find(tables.facts.begin(), tables.facts.end(), fact) != tables.facts.end();
}

std::string span_name(const Timeline& tables, const OpRow& op) {
  const bool whole = of_submissions(tables) || is_imported(tables);
  return whole ? tables.fragments[op.fragment] : op_name(op);
}

std::vector<std::string> span_names(const Timeline& tables) {
  const bool whole = of_submissions(tables) || is_imported(tables);
  std::vector<std::string> names;
  for (const OpRow& op : tables.ops) names.push_back(whole ? tables.fragments[op.fragment] : op_name(op));
  return names;
}

std::string given_class_name(const Timeline& tables, std::int32_t rank_class) {
  const std::string by_run = fmt::format("class {}", rank_class),
                    by_import = fmt::format("row {}", rank_class);
  for (const auto& [name, value] : tables.facts)
    if (name == by_run || name == by_import) return value;
  return {};
}

std::string lane_name(Lane lane, std::int32_t part) {
  return part == 0 ? std::string(to_string(lane)) : fmt::format("{} {}", to_string(lane), part + 1);
}

std::vector<std::string> class_names(const Timeline& tables) {
  std::unordered_map<std::string_view, std::string_view> facts;
  for (const auto& [name, value] : tables.facts) facts.emplace(name, value);
  std::vector<std::string> names;
  for (std::size_t c = 0; c < tables.class_ranks.size(); ++c) {
    auto given = facts.find(fmt::format("class {}", c));
    if (given == facts.end()) given = facts.find(fmt::format("row {}", c));
    names.push_back(given == facts.end() || given->second.empty()
                        ? own_class_name(tables, static_cast<std::int32_t>(c))
                        : std::string(given->second));
  }
  return names;
}

std::string class_name(const Timeline& tables, std::int32_t rank_class) {
  const std::string given = given_class_name(tables, rank_class);
  return given.empty() ? own_class_name(tables, rank_class) : given;
}

}  // namespace moebius::viz
