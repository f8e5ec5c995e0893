// The pages of one rank's cache: which are free. The lowest free page is given first, so that equal runs have
// equal block tables.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace moebius {

class PagePool {
 public:
  explicit PagePool(std::int32_t pages);

  std::int32_t take();  // CHECKs that there is one
  void give(std::int32_t page);
  std::int32_t size() const { return size_; }
  std::int32_t used() const { return size_ - static_cast<std::int32_t>(free_.size()); }
  std::int32_t peak() const { return peak_; }

 private:
  std::int32_t size_, peak_ = 0;
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free_;
};

// Pages that hold so many tokens.
constexpr std::int32_t pages_for(std::int64_t tokens, std::int32_t page_tokens) {
  return static_cast<std::int32_t>((tokens + page_tokens - 1) / page_tokens);
}

}  // namespace moebius
