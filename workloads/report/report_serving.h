// The report's part on requests: latencies, rates, the cache, and, of a whole service, its pools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/report/report.h"

namespace moebius {

using Figure = std::variant<std::int64_t, double, std::nullptr_t>;  // nullptr: there is no such figure
inline Figure figure_if(bool exists, double figure) {
  return exists ? Figure(figure) : Figure(nullptr);
}

// Keys and figures of the report as JSON, in the order of writing: figures first, then parts.
struct FigureTree {
  std::vector<std::pair<std::string, Figure>> rows = {};
  std::vector<std::pair<std::string, FigureTree>> parts = {};
  std::vector<std::pair<std::string, std::vector<double>>> lists = {};
};
// How many tokens a block has: of the cache, and of those by which traffic says what prompts share.
struct BlockTokens {
  std::int64_t of_page = 0, of_prompt = 0;
};
BlockTokens block_tokens_of(const Report& report);

FigureTree serving_tree(const Report& report);

std::string serving_text(const Report& report);

}  // namespace moebius
