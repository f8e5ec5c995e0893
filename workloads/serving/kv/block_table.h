// A flat hash table from the 64-bit hash of a block to a small number: open addressing with linear probing,
// no allocation but when it grows.
#pragma once

#include <cstdint>
#include <vector>

namespace moebius::kv {

// Of a block and all before it: equal hashes, equal tokens from the first one to the block's end.
using BlockHash = std::uint64_t;

class BlockTable {
 public:
  BlockTable();

  std::int32_t find(BlockHash hash) const;  // -1: it is not in the table
  // False where it was in it already, which then stays as it was. `number` is at least 0.
  bool insert(BlockHash hash, std::int32_t number);
  void erase(BlockHash hash);  // CHECKs that it is in the table
  std::int64_t size() const { return size_; }

 private:
  struct Cell {
    BlockHash hash = 0;
    std::int32_t number = -1;
  };

  // The high bits of a product with the golden ratio: near ids come far apart.
  std::size_t home(BlockHash hash) const { return (hash * 0x9e3779b97f4a7c15u) >> shift_; }
  std::size_t after(std::size_t at) const { return (at + 1) & (cells_.size() - 1); }
  void grow();

  std::vector<Cell> cells_;  // a power of two of them, at most two in three in use
  int shift_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace moebius::kv
