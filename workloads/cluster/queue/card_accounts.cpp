#include "workloads/cluster/queue/card_accounts.h"

#include <numeric>

namespace moebius {

namespace {
constexpr std::array<std::string_view, kNumCardItems> kNames{
    "useful",     "served", "slowed", "recomputed", "checkpoint", "starting", "fault", "spare",
    "fragmented", "quota",  "held",   "power",      "too_few",    "ungrown",  "idle",  "broken"};
}  // namespace

std::string_view to_string(CardItem item) {
  return kNames[static_cast<int>(item)];
}

CardTime CardAccounts::all() const {
  return std::accumulate(items_.begin(), items_.end(), CardTime{0});
}

CardTime CardAccounts::held() const {
  return std::accumulate(items_.begin(), items_.begin() + static_cast<int>(CardItem::kFault) + 1,
                         CardTime{0});
}

CardAccounts& CardAccounts::operator+=(const CardAccounts& other) {
  for (int i = 0; i < kNumCardItems; ++i) items_[i] += other.items_[i];
  return *this;
}

}  // namespace moebius
