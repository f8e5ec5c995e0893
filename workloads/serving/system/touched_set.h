// Which of many have been touched since somebody looked: a bit each, so that who looks goes through the few
// that have, in order. Those that are touched set their bits themselves.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace moebius {

// Where one of them sets its bit, as long as the set is there.
struct TouchMark {
  std::uint64_t* word = nullptr;  // null: nobody looks
  std::uint64_t bit = 0;
  void set() const {
    if (word != nullptr) *word |= bit;
  }
};

class TouchedSet {
 public:
  // All of them, to begin with.
  explicit TouchedSet(std::size_t size) : words_((size + 63) / 64) {
    for (std::size_t i = 0; i < size; ++i) mark(i).set();
    full_ = words_;
  }
  // A copy would leave the marks with the other one; a moved set keeps its words, and so the marks.
  TouchedSet(const TouchedSet&) = delete;
  TouchedSet& operator=(const TouchedSet&) = delete;
  TouchedSet(TouchedSet&&) noexcept = default;
  TouchedSet& operator=(TouchedSet&&) noexcept = default;

  TouchMark mark(std::size_t index) { return {&words_[index / 64], std::uint64_t{1} << index % 64}; }

  bool full() const { return words_ == full_; }

  // visit(index), ascending.
  template <class Visit>
  void visit(Visit visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t left = words_[w]; left != 0; left &= left - 1)
        visit(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
  }

  // The same; those for which keep(index) is false are out of it afterwards, whatever was touched meanwhile.
  template <class Keep>
  void filter(Keep keep) {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t left = words_[w]; left != 0; left &= left - 1)
        if (!keep(w * 64 + static_cast<std::size_t>(std::countr_zero(left)))) words_[w] &= ~(left & -left);
  }

 private:
  std::vector<std::uint64_t> words_, full_;
};

}  // namespace moebius
