#include "workloads/serving/kv/page_pool.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

PagePool::PagePool(std::int32_t pages) : size_(pages) {
  for (std::int32_t page = 0; page < pages; ++page) free_.push(page);
}

std::int32_t PagePool::take() {
  CHECK(!free_.empty(), fmt::format("all {} pages are taken", size_));
  const std::int32_t page = free_.top();
  free_.pop();
  peak_ = std::max(peak_, used());
  return page;
}

void PagePool::give(std::int32_t page) {
  CHECK(page >= 0 && page < size_, fmt::format("page {} of {}", page, size_));
  free_.push(page);
}

}  // namespace moebius
