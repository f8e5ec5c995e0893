#include "workloads/study/study_influence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moebius {

namespace {

constexpr double kRounding = 1e-9;   // of the largest value
constexpr double kDependent = 1e-9;  // of a column's square: what is left of it beside those it follows from

// Sums of squares and products about the means, of the model's columns and, last, of the values. Sweeping a
// column takes what it explains out of all that is left (Goodnight 1979, the sweep operator).
class Products {
 public:
  explicit Products(std::size_t size) : size_(size), cells_(size * size, 0) {}

  double& at(std::size_t i, std::size_t j) { return cells_[i * size_ + j]; }
  double at(std::size_t i, std::size_t j) const { return cells_[i * size_ + j]; }
  double left() const { return cells_.back(); }
  double slope(std::size_t column) const { return at(column, size_ - 1); }

  // Those columns and the values alone.
  Products of(std::size_t first, std::size_t count) const {
    Products part(count + 1);
    const auto from = [&](std::size_t i) { return i < count ? first + i : size_ - 1; };
    for (std::size_t i = 0; i <= count; ++i)
      for (std::size_t j = 0; j <= count; ++j) part.at(i, j) = at(from(i), from(j));
    return part;
  }

  void sweep(std::size_t column) {
    const double pivot = at(column, column);
    for (std::size_t j = 0; j < size_; ++j) at(column, j) /= pivot;
    for (std::size_t i = 0; i < size_; ++i) {
      const double factor = at(i, column);
      if (i == column || factor == 0) continue;
      for (std::size_t j = 0; j < size_; ++j) at(i, j) -= factor * at(column, j);
      at(i, column) = -factor / pivot;
    }
    at(column, column) = 1 / pivot;
  }

 private:
  std::size_t size_;
  std::vector<double> cells_;
};

// The columns of one factor: of levels one for each but the first.
struct Columns {
  std::size_t first = 0, count = 0;
};

class ColumnModel {
 public:
  ColumnModel(const std::vector<Factor>& factors, const std::vector<double>& values)
      : factors_(factors), mean_(std::accumulate(values.begin(), values.end(), 0.0) / values.size()) {
    std::size_t size = 0;
    for (const Factor& factor : factors) {
      const std::size_t count = factor.levels > 0 ? static_cast<std::size_t>(factor.levels - 1) : 1;
      columns_.push_back({size, count});
      size += count;
    }
    products_ = Products(size + 1);
    add(values);
    for (std::size_t i = 0; i < size; ++i) own_.push_back(products_.at(i, i));
  }

  std::vector<Influence> influences() const {
    std::vector<Influence> found(factors_.size());
    add_shares(found);
    Products all = products_;
    for (const Columns& columns : columns_) sweep(all, columns, 0);
    for (std::size_t i = 0; i < found.size(); ++i) {
      found[i].pointer = factors_[i].pointer;
      found[i].effect = mean_ != 0 ? change(all, i) / std::abs(mean_) : 0;
      found[i].apart = told_apart(i);
      const double first = at_first_value(all, i);
      if (factors_[i].levels > 0 && factors_[i].ordered && first > 0)
        found[i].change = change(all, i) / first;
    }
    return found;
  }

 private:
  void add(const std::vector<double>& values) {
    const std::size_t last = columns_.back().first + columns_.back().count;
    std::vector<double> sums(last + 1, 0);
    std::vector<std::pair<std::size_t, double>> row;
    for (std::size_t point = 0; point < values.size(); ++point) {
      row.clear();
      for (std::size_t i = 0; i < factors_.size(); ++i) {
        const Factor& factor = factors_[i];
        if (factor.levels == 0) row.emplace_back(columns_[i].first, factor.drawn[point]);
        if (factor.levels > 0 && factor.level[point] > 0)
          row.emplace_back(columns_[i].first + static_cast<std::size_t>(factor.level[point] - 1), 1);
      }
      row.emplace_back(last, values[point] - mean_);
      for (const auto& [i, x] : row) {
        sums[i] += x;
        for (const auto& [j, y] : row) products_.at(i, j) += x * y;
      }
    }
    for (const double sum : sums) means_.push_back(sum / static_cast<double>(values.size()));
    for (std::size_t i = 0; i <= last; ++i)
      for (std::size_t j = 0; j <= last; ++j) products_.at(i, j) -= sums[i] * sums[j] / values.size();
  }

  // Columns that follow from those swept before are left out; returns whether there are any. The first of
  // `products` is the model's column `offset`.
  bool sweep(Products& products, const Columns& columns, std::size_t offset) const {
    bool left_out = false;
    for (std::size_t i = columns.first; i < columns.first + columns.count; ++i) {
      if (products.at(i - offset, i - offset) > kDependent * own_[i])
        products.sweep(i - offset);
      else
        left_out = true;
    }
    return left_out;
  }

  // One after the other, the one first that explains the most of what is left.
  void add_shares(std::vector<Influence>& found) const {
    Products left = products_;
    const double whole = left.left();
    std::vector<std::size_t> open(factors_.size());
    std::iota(open.begin(), open.end(), 0);
    while (!open.empty()) {
      std::size_t best = 0;
      double least = 0;
      for (std::size_t i = 0; i < open.size(); ++i) {
        const Columns& columns = columns_[open[i]];
        Products own = left.of(columns.first, columns.count);
        sweep(own, columns, columns.first);
        if (i == 0 || own.left() < least) best = i, least = own.left();
      }
      found[open[best]].share = std::clamp((left.left() - least) / whole, 0.0, 1.0);
      sweep(left, columns_[open[best]], 0);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(best));
    }
  }

  bool told_apart(std::size_t factor) const {
    Products left = products_;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (i != factor) sweep(left, columns_[i], 0);
    return !sweep(left, columns_[factor], 0);
  }

  double change(const Products& all, std::size_t i) const {
    const Columns& columns = columns_[i];
    if (factors_[i].ordered || factors_[i].levels == 0) return all.slope(columns.first + columns.count - 1);
    double least = 0, largest = 0;  // the first one's
    for (std::size_t j = columns.first; j < columns.first + columns.count; ++j) {
      least = std::min(least, all.slope(j));
      largest = std::max(largest, all.slope(j));
    }
    return largest - least;
  }

  double at_first_value(const Products& all, std::size_t i) const {
    const Columns& columns = columns_[i];
    double value = mean_;
    for (std::size_t j = columns.first; j < columns.first + columns.count; ++j)
      value -= all.slope(j) * means_[j];
    return value;
  }

  const std::vector<Factor>& factors_;
  double mean_;
  std::vector<Columns> columns_;  // by factor
  Products products_{0};
  std::vector<double> own_;    // each column's square
  std::vector<double> means_;  // of the columns
};

bool differ(const std::vector<double>& values) {
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  return *largest - *least > kRounding * std::max(std::abs(*least), std::abs(*largest));
}

}  // namespace

std::vector<Influence> influences_of(const std::vector<Factor>& factors, const std::vector<double>& values) {
  int columns = 0;
  for (const Factor& factor : factors) columns += factor.levels > 0 ? factor.levels - 1 : 1;
  if (columns == 0 || columns > kMostModelColumns || !differ(values)) return {};
  std::vector<Influence> found = ColumnModel(factors, values).influences();
  std::stable_sort(found.begin(), found.end(), [](const Influence& a, const Influence& b) {
    return std::pair(a.apart, a.share) > std::pair(b.apart, b.share);
  });
  return found;
}

}  // namespace moebius
