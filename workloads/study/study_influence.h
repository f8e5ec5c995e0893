// What moves a column of a study: one linear model of all that varies, by least squares.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moebius {

// Of what varies, by point: which of its values it takes, or what was drawn for it.
struct Factor {
  std::string pointer;
  int levels = 0;             // 0: drawn
  bool ordered = true;        // levels come in the order of `vary`
  std::vector<int> level;     // by point, all of 0 .. levels - 1 among them
  std::vector<double> drawn;  // by point, as a share of the range
};

// How much of a column's differences a varied value accounts for.
struct Influence {
  std::string pointer;  // "cases": they change several values at once
  bool apart = true;    // false: the points vary it with others only, and what follows is not known
  // Of the variance between points what it explains beside those that explain more: all sum to at most 1.
  double share = 0;
  // Over the mean of all, the others unchanged: at the last of its values less at the first, in the order of
  // `vary`; of cases the largest less the least; of a drawn one what a straight line rises over its range.
  double effect = 0;
  // Of what has a first value: at the last over that at the first, less 1, the others as they are on average.
  std::optional<double> change = {};
};

// Most columns of one model: a value more than the first of each factor is one.
inline constexpr int kMostModelColumns = 500;

// The largest share first. None where the values differ by no more than rounding, or where the factors have
// more values than kMostModelColumns.
std::vector<Influence> influences_of(const std::vector<Factor>& factors, const std::vector<double>& values);

}  // namespace moebius
