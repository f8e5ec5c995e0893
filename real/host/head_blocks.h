// The blocks of an exchange of heads in a context group: columns of a matrix that become rows, or back
// (kHeadsOut, kHeadsBack of workloads/schedule/context_part.h).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "hw/error.h"
#include "real/host/matrix.h"

namespace moebius {

template <class Real>
class HeadBlocks {
 public:
  // Out: column block i of x goes to member i, and what comes stands member by member; else the other way.
  HeadBlocks(const Matrix<Real>& x, int members, bool out) : x_(x), members_(members), out_(out) {
    CHECK((out ? x.columns : x.rows) % members == 0, std::string("heads or rows that members do not divide"));
    rows_ = out ? x.rows : x.rows / members;
    columns_ = out ? x.columns / members : x.columns;
  }

  std::int64_t elements() const { return rows_ * columns_; }  // of a block
  Matrix<Real> result() const {
    return out_ ? Matrix<Real>(rows_ * members_, columns_) : Matrix<Real>(rows_, columns_ * members_);
  }

  std::vector<std::vector<Real>> packed() const {
    std::vector<std::vector<Real>> blocks(members_);
    for (int member = 0; member < members_; ++member) {
      for (std::int64_t r = 0; r < rows_; ++r) {
        const Real* from = out_ ? x_.row(r) + member * columns_ : x_.row(member * rows_ + r);
        blocks[member].insert(blocks[member].end(), from, from + columns_);
      }
    }
    return blocks;
  }

  // What came from `member`, into the result.
  void place(std::span<const Real> block, int member, Matrix<Real>& y) const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      Real* to = out_ ? y.row(member * rows_ + r) : y.row(r) + member * columns_;
      std::copy_n(block.begin() + r * columns_, columns_, to);
    }
  }

 private:
  const Matrix<Real>& x_;
  int members_;
  bool out_;
  std::int64_t rows_ = 0, columns_ = 0;
};

}  // namespace moebius
