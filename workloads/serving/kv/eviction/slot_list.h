// Slots in an order of their own, each at most once in a list: links in flat arrays, no allocation but when
// slots become more.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace moebius::kv {

// The links of slots, shared by lists no two of which hold the same slot.
struct SlotLinks {
  std::vector<std::int32_t> older, newer;

  void reach(std::int32_t slot) {
    if (slot < static_cast<std::int32_t>(older.size())) return;
    older.resize(slot + 1, -1);
    newer.resize(slot + 1, -1);
  }
};

struct SlotList {
  std::int32_t oldest = -1, newest = -1;
  std::int64_t size = 0;

  void push(SlotLinks& links, std::int32_t slot) {
    links.older[slot] = newest;
    links.newer[slot] = -1;
    (newest < 0 ? oldest : links.newer[newest]) = slot;
    newest = slot;
    ++size;
  }
  // `slot` as the one used next after `before`, which is in the list.
  void insert_after(SlotLinks& links, std::int32_t before, std::int32_t slot) {
    const std::int32_t after = links.newer[before];
    links.older[slot] = before;
    links.newer[slot] = after;
    links.newer[before] = slot;
    (after < 0 ? newest : links.older[after]) = slot;
    ++size;
  }
  void remove(SlotLinks& links, std::int32_t slot) {
    const auto [before, after] = std::pair(links.older[slot], links.newer[slot]);
    (before < 0 ? oldest : links.newer[before]) = after;
    (after < 0 ? newest : links.older[after]) = before;
    --size;
  }
};

}  // namespace moebius::kv
