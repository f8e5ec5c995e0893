#include "viz/page/cluster_sections.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "hw/file_bytes.h"
#include "hw/units.h"
#include "viz/page/charts.h"
#include "viz/page/html.h"
#include "workloads/report/number_text.h"

namespace moebius::viz {

namespace {

constexpr std::uintmax_t kMostOfPicture = 2'000'000;  // bytes: a row a job

std::string in_words(std::string name) {
  if (name.ends_with("_s")) name.resize(name.size() - 2);
  std::replace(name.begin(), name.end(), '_', ' ');
  return escaped(name);
}

// Names of rows may have dots, which a path does not.
template <class Take>
void each_row(const Figures& figures, const char* path, Take take) {
  const Value* rows = figures.value(path);
  for (std::size_t i = 0; rows != nullptr && rows->kind == Value::Kind::kObject && i < rows->items.size();
       ++i) {
    if (rows->items[i].kind == Value::Kind::kObject)
      take(rows->keys[i], Figures(Document{"", rows->items[i]}));
  }
}

template <class Shown>
std::string mean_of(const Figures& row, const std::string& key, Shown shown) {
  const auto mean = row.number(key + ".mean");
  return mean ? escaped(shown(*mean)) : "-";
}

std::string count(double value) {
  return fmt::format("{:.0f}", value);
}

std::string percent(double value) {
  return fmt::format("{:.1f}%", 100 * value);
}

std::string hours(double seconds) {
  return fmt::format("{:.1f} h", seconds / 3600);
}

// Parts of the time of one thing: "useful", "productive_s".
std::string time_bar(const Figures& figures, const char* path, bool in_seconds) {
  std::vector<Part> parts;
  each_row(figures, path, [&](const std::string& name, const Figures& row) {
    const double mean = row.number("mean").value_or(0);
    parts.push_back({in_words(name), std::max(0.0, mean), in_seconds ? seconds_text(mean) : ""});
  });
  return stacked_bar(parts);
}

}  // namespace

std::string time_of_cards(const Figures& figures) {
  std::string text = time_bar(figures, "cluster.card_time", false);
  each_row(figures, "cluster.jobs", [&](const std::string& name, const Figures& job) {
    const std::string bar = time_bar(job, "time", true);
    if (!bar.empty()) text += fmt::format("<p><b>{}</b></p>\n{}", escaped(name), bar);
  });
  return text;
}

std::string cluster_picture(const std::string& directory) {
  std::error_code none;
  const std::string picture = directory + "/cluster.svg";
  const auto size = std::filesystem::file_size(picture, none);
  if (none) return "";
  if (size > kMostOfPicture)
    return "<p class=\"soft\">cluster.svg beside report.json is too large for a page.</p>\n";
  const FileBytes svg(picture);
  return fmt::format("<div class=\"scroll fit\">{}</div>\n", std::string_view(svg.data(), svg.size()));
}

std::string queues(const Figures& figures) {
  std::vector<std::vector<std::string>> rows;
  each_row(figures, "cluster.queues", [&](const std::string& name, const Figures& queue) {
    rows.push_back({escaped(name), mean_of(queue, "jobs", count), mean_of(queue, "started", count),
                    mean_of(queue, "done", count), mean_of(queue, "quota_use", percent),
                    mean_of(queue, "wait_p50_s", hours), mean_of(queue, "wait_p95_s", hours),
                    mean_of(queue, "longest_wait_s", hours),
                    mean_of(queue, "slowdown_p50", [](double value) { return fmt::format("{:.2f}", value); }),
                    mean_of(queue, "preempted", count), mean_of(queue, "resized", count)});
  });
  return table({"queue", "jobs", "started", "done", "of its quota", "wait, median", "wait, 95th percentile",
                "longest wait", "slowdown, median", "preempted", "resized"},
               rows);
}

std::string shapes(const Figures& figures) {
  std::vector<std::vector<std::string>> rows;
  each_row(figures, "cluster.shapes", [&](const std::string& name, const Figures& shape) {
    std::string pools;
    each_row(shape, "pools", [&](const std::string& pool, const Figures& share) {
      const double mean = share.number("mean").value_or(0);
      if (mean > 0.0005)
        pools += fmt::format("{}{} {:.0f}%", pools.empty() ? "" : ", ", escaped(pool), 100 * mean);
    });
    const auto usd = shape.number("usd_per_million_tokens");
    rows.push_back({escaped(name),
                    mean_of(shape, "card_hours", [](double value) { return grouped(std::llround(value)); }),
                    pools.empty() ? "-" : pools,
                    mean_of(shape, "tokens", [](double value) { return fmt::format("{:.4g}", value); }),
                    usd ? fmt::format("{:.3g} USD", *usd) : "-"});
  });
  return table({"shape", "card hours", "on", "tokens", "a million tokens"}, rows);
}

}  // namespace moebius::viz
