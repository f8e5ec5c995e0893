// How many pages a sequence holds where not all layers look back as far, and pages that no layer looks at any
// more are free for others: one pool, whose pages hold so many tokens of a part of the layers (vLLM's hybrid
// cache manager, docs/design/hybrid_kv_cache_manager; its parts are padded to be equal, these are so by
// number). Without windows, one part of all layers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace moebius {

struct PageParts {
  std::int32_t whole = 1;     // parts of the layers that look back to the first token
  std::int32_t windowed = 0;  // and of those that do not
  // Pages of one of the latter at most: between iterations, and while a prompt is computed, in which the keys
  // of an iteration are added before those that it looked back to are free.
  std::int32_t window = 0, prompt_window = 0;

  std::int32_t all() const { return whole + windowed; }
  // Of a sequence of so many tokens, whose pages would be `pages` if all layers had one part.
  std::int64_t held(std::int64_t pages) const {
    return whole * pages + windowed * std::min<std::int64_t>(pages, window);
  }
  std::int64_t held_by_prompt(std::int64_t pages) const {
    return whole * pages + windowed * std::min<std::int64_t>(pages, prompt_window);
  }
  // Of what all layers would keep of so many tokens, as tokens.
  double kept(double tokens, std::int32_t page_tokens) const {
    const double seen = std::min(tokens, static_cast<double>(window) * page_tokens);
    return (whole * tokens + windowed * seen) / all();
  }
};

}  // namespace moebius
