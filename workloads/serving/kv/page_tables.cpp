#include "workloads/serving/kv/page_tables.h"

#include <utility>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {

PageTables::PageTables(const PageTablesShape& shape)
    : shape_(shape), pool_(shape.pages), host_(shape.host_pages), states_(shape.states) {}

void PageTables::begin(std::int32_t sequence, Chain there, std::int64_t own) {
  CHECK(tables_.count(sequence) == 0, fmt::format("sequence {} has pages already", sequence));
  Table& table = tables_[sequence];
  for (const BlockHash hash : there) {
    const std::vector<std::int32_t>& pages = blocks_.at(hash);
    table.pages.insert(table.pages.end(), pages.begin(), pages.end());
  }
  table.shared = table.pages.size();
  if (shape_.states > 0) table.state = states_.take();
  grow(sequence, own);
}

void PageTables::grow(std::int32_t sequence, std::int64_t own) {
  std::vector<std::int32_t>& pages = tables_.at(sequence).pages;
  for (std::int64_t i = 0; i < own; ++i) pages.push_back(pool_.take());
}

void PageTables::share(std::int32_t sequence, Chain chain) {
  Table& table = tables_.at(sequence);
  const auto size = static_cast<std::size_t>(shape_.block_pages);
  for (std::size_t block = table.shared / size; block < chain.size(); ++block) {
    const auto first = table.pages.begin() + static_cast<std::ptrdiff_t>(block * size);
    const auto [known, is_new] = blocks_.try_emplace(chain[block], first, first + shape_.block_pages);
    if (is_new) continue;
    for (std::size_t i = 0; i < size; ++i) {
      pool_.give(first[static_cast<std::ptrdiff_t>(i)]);
      first[static_cast<std::ptrdiff_t>(i)] = known->second[i];
    }
  }
  table.shared = chain.size() * size;
}

void PageTables::evict(const std::vector<EvictedBlock>& blocks) {
  for (const EvictedBlock& block : blocks) {
    const auto gone = blocks_.find(block.hash);
    CHECK(gone != blocks_.end(), fmt::format("block {} has no pages", block.hash));
    for (const std::int32_t page : gone->second) pool_.give(page);
    blocks_.erase(gone);
  }
}

void PageTables::leave(std::int32_t sequence) {
  const auto at = tables_.find(sequence);
  CHECK(at != tables_.end(), fmt::format("sequence {} has no pages", sequence));
  for (std::size_t i = at->second.shared; i < at->second.pages.size(); ++i) pool_.give(at->second.pages[i]);
  if (shape_.states > 0) states_.give(at->second.state);
  left_ = sequence;
  left_pages_ = std::move(at->second.pages);
  tables_.erase(at);
}

std::vector<std::int32_t> PageTables::first_pages(const std::vector<std::int32_t>& pages,
                                                  std::int32_t tokens) const {
  return {pages.begin(), pages.begin() + pages_for(tokens, shape_.page_tokens)};
}

void PageTables::swap_out(std::int32_t sequence, std::int32_t tokens) {
  CHECK(left_ == sequence, fmt::format("sequence {} has not just left", sequence));
  std::vector<std::int32_t>& host = on_host_[sequence];
  for (int i = 0; i < pages_for(tokens, shape_.page_tokens); ++i) host.push_back(host_.take());
  swapped_.push_back({sequence, tokens, true, first_pages(left_pages_, tokens), host});
}

void PageTables::swap_in(std::int32_t sequence, std::int32_t tokens, std::int64_t own) {
  begin(sequence, {}, own);
  const auto host = on_host_.find(sequence);
  CHECK(host != on_host_.end(), fmt::format("sequence {} does not wait on the host", sequence));
  for (const std::int32_t page : host->second) host_.give(page);
  swapped_.push_back({sequence, tokens, false, first_pages(of(sequence), tokens), std::move(host->second)});
  on_host_.erase(host);
}

const std::vector<std::int32_t>& PageTables::of(std::int32_t sequence) const {
  const auto at = tables_.find(sequence);
  CHECK(at != tables_.end(), fmt::format("sequence {} has no pages", sequence));
  return at->second.pages;
}

std::int32_t PageTables::state_of(std::int32_t sequence) const {
  const auto at = tables_.find(sequence);
  CHECK(at != tables_.end(), fmt::format("sequence {} has no row", sequence));
  return at->second.state;
}

}  // namespace moebius::kv
