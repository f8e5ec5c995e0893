// Experts of different loads in terms of experts that are all loaded alike, which is what is measured.
// Grouped kernels go through the experts one after the other, so an expert of r rows takes the share that it
// takes among experts of r rows each; experts without rows cost what they cost among as many others of one
// row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace moebius {

// So many rows, spread evenly over all experts, and how often their time counts (less than not at all where
// it stands in another one).
struct EvenLoad {
  std::int64_t rows = 0;
  double weight = 0;
};

class EvenLoads {
 public:
  // `rows` of each expert, those without rows included; at least one has rows. Loads within a factor of two
  // are taken together at their mean, each with what it leaves empty of its last tile. Loads that differ by
  // one row at most are even: they give their sum with weight one where every expert has rows.
  explicit EvenLoads(std::span<const std::int32_t> rows);

  const EvenLoad* begin() const { return loads_.data(); }
  const EvenLoad* end() const { return loads_.data() + size_; }

  // The time from `even`, which gives that of an even load of so many rows.
  template <typename Even>
  double sum(const Even& even) const {
    double seconds = 0;
    for (const EvenLoad& load : *this) seconds += load.weight * even(load.rows);
    return seconds;
  }

 private:
  std::array<EvenLoad, 34> loads_{};  // one a power of two, and two for experts without rows
  std::size_t size_ = 0;
};

}  // namespace moebius
