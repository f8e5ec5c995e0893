// Bars for a page: plain elements whose lengths are shares, so that words keep their size on any screen.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moebius::viz {

// The n-th colour of things that have no order; the same on every page.
std::string colour(std::size_t n);

struct Part {
  std::string name;         // HTML
  double value = 0;         // >= 0
  std::string shown;        // the value in words
  std::string colour = {};  // empty: by its place
};

// Parts of a whole in one bar, with a key below. `limit`, when given, is marked; the bar ends at it or at the
// sum, whichever is more.
std::string stacked_bar(const std::vector<Part>& parts, std::optional<double> limit = {});

// A bar a line, all to one scale.
std::string bars(const std::vector<Part>& parts, std::optional<double> limit = {});

}  // namespace moebius::viz
