// The figures of a run's report.json, by dotted path.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/document.h"

namespace moebius::viz {

class Figures {
 public:
  // Reads DIRECTORY/report.json; input_error when there is none, or it is no report.
  explicit Figures(const std::string& directory);
  explicit Figures(Document report) : report_(std::move(report)) {}
  const Value& report() const { return report_.root; }

  std::optional<double> number(std::string_view path) const;
  std::string text(std::string_view path) const;    // empty when there is none
  const Value* value(std::string_view path) const;  // null when there is none
  // The numbers directly inside an object, in its order.
  std::vector<std::pair<std::string, double>> numbers_in(std::string_view path) const;
  // Every figure and text of the report: its path, and its value as it stands there. Long arrays are cut.
  std::vector<std::pair<std::string, std::string>> all() const;

 private:
  Document report_;
};

// A figure with the unit that the end of its path says: _s seconds, _bytes, _per_s, shares and counts.
std::string shown(std::string_view path, double value);

}  // namespace moebius::viz
