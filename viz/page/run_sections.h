// What a page shows of one run, each part empty where the run has nothing of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viz/page/figures.h"
#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

struct RunOnPage {
  std::string name;  // as it was given: the directory
  Figures figures;
  std::optional<SpanColumns> spans;  // nothing when the directory has no timeline

  explicit RunOnPage(const std::string& directory);
};

// Paths of the figures that stand at the top, of this run's kind, those that it has.
std::vector<std::string> headline_paths(const Figures& figures);
// "tokens a second", with its meaning; of a run with other phases than training whether it is of that alone.
std::string figure_name(std::string_view path, const Figures& figures);

std::string headline(const Figures& figures);
std::string breakdown(const Figures& figures);
std::string memory(const Figures& figures);
std::string network(const Figures& figures, const std::string& directory);
std::string latencies(const Figures& figures);
std::string service(const Figures& figures);
std::string expectations(const Figures& figures);
std::string trust(const Figures& figures);  // uncertainty, provenance
std::string all_figures(const Figures& figures);

}  // namespace moebius::viz
