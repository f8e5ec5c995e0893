// Which pages of a replica's cache hold what. A replica decides by counting pages; where its iterations are
// carried out, this follows what it counts and says which pages those are: of each sequence those of its own,
// behind those of blocks that it shares; and where the keys of preempted ones wait in the host's memory.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "workloads/serving/kv/block_index.h"
#include "workloads/serving/kv/page_pool.h"

namespace moebius::kv {

struct PageTablesShape {
  std::int32_t pages = 0;  // of the cache
  std::int32_t page_tokens = 1;
  std::int32_t block_pages = 0;  // of a block that sequences share; 0: none do
  std::int32_t host_pages = 0;   // for preempted sequences
  std::int32_t states = 0;       // rows of what is kept of a sequence whatever its length; 0: nothing is
};

// The keys of a sequence on their way to the host's memory or back, before the iteration.
struct SwappedKeys {
  std::int32_t sequence = 0, tokens = 0;
  bool out = true;
  std::vector<std::int32_t> device, host;  // pages, from the first position on
};

class PageTables {
 public:
  explicit PageTables(const PageTablesShape& shape);

  // A sequence comes: blocks that are there already, then so many pages of its own.
  void begin(std::int32_t sequence, Chain there, std::int64_t own);
  void grow(std::int32_t sequence, std::int64_t own);
  // The blocks of its prompt are computed: those that nobody had are shared from now on, of the others its
  // own pages are free.
  void share(std::int32_t sequence, Chain chain);
  void evict(const std::vector<EvictedBlock>& blocks);
  void leave(std::int32_t sequence);  // its own pages are free

  // Right after it left; and when it comes again, which takes the place of begin().
  void swap_out(std::int32_t sequence, std::int32_t tokens);
  void swap_in(std::int32_t sequence, std::int32_t tokens, std::int64_t own);
  const std::vector<SwappedKeys>& swapped() const { return swapped_; }  // in order, since forget_swapped()
  void forget_swapped() { swapped_.clear(); }

  const std::vector<std::int32_t>& of(std::int32_t sequence) const;  // CHECKs that it is there
  std::int32_t state_of(std::int32_t sequence) const;                // its row, from its beginning on
  std::int32_t used() const { return pool_.used(); }
  std::int32_t peak() const { return pool_.peak(); }

 private:
  struct Table {
    std::vector<std::int32_t> pages;
    std::size_t shared = 0;  // leading ones
    std::int32_t state = 0;
  };
  std::vector<std::int32_t> first_pages(const std::vector<std::int32_t>& pages, std::int32_t tokens) const;

  PageTablesShape shape_;
  PagePool pool_, host_, states_;
  std::unordered_map<std::int32_t, Table> tables_;
  std::unordered_map<BlockHash, std::vector<std::int32_t>> blocks_;
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> on_host_;
  std::int32_t left_ = -1;  // who left last, and what it had
  std::vector<std::int32_t> left_pages_;
  std::vector<SwappedKeys> swapped_;
};

}  // namespace moebius::kv
