#include "viz/page/run_sections.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "hw/file_bytes.h"
#include "viz/page/charts.h"
#include "viz/page/html.h"
#include "workloads/report/number_text.h"
#include "workloads/report/run_directory.h"

namespace moebius::viz {

namespace {

struct Named {
  std::string_view path, name;
};

// In the order in which a page shows them.
constexpr std::array kHeadline{
    Named{"rl.step_time_s", "step time, all phases"},
    Named{"rl.tokens_per_s", "tokens a second, all phases"},
    Named{"rl.response_tokens_per_s", "tokens of responses a second"},
    Named{"step_time_s", "step time"},
    Named{"mfu", "MFU"},
    Named{"tokens_per_s", "tokens a second"},
    Named{"tokens_per_s_per_device", "tokens a second and device"},
    Named{"output_tokens_per_s", "tokens out a second"},
    Named{"input_tokens_per_s", "tokens in a second"},
    Named{"ttft_s.p50", "TTFT"},
    Named{"tpot_s.p50", "TPOT"},
    Named{"goodput_rps", "goodput"},
    Named{"slo_attainment", "SLO attainment"},
    Named{"requests.completed", "requests answered"},
    Named{"cost.usd_per_hour", "price of an hour"},
    Named{"cost.usd_per_million_tokens", "price of a million tokens"},
    Named{"cost.joules_per_output_token", "energy of a token out"},
    Named{"collective.time_s", "time of the operation"},
    Named{"collective.busbw_bytes_per_s", "busbw"},
    Named{"collective.algbw_bytes_per_s", "payload over time"},
    Named{"kv.hit_blocks", "blocks hit"},
    Named{"kv.total_blocks", "blocks asked for"},
    Named{"kv.hit_share", "share hit"},
    Named{"cluster.effective_time.mean", "effective time"},
    Named{"cluster.allocation.mean", "allocated"},
    Named{"cluster.attainable.mean", "attainable"},
    Named{"cluster.utilisation.mean", "utilised"},
    Named{"cluster.offered.mean", "offered"},
    Named{"cluster.borrowed.mean", "borrowed"},
    Named{"cluster.jobs.mean", "jobs"},
    Named{"cluster.done.mean", "jobs done"},
    Named{"cluster.interruptions.mean", "interruptions"},
    Named{"cluster.nodes_in_repair.mean", "in repair"},
    Named{"cluster.energy_j.mean", "energy at the meter"},
    Named{"cluster.cost_usd.mean", "price"},
    Named{"cluster.tokens.mean", "tokens"},
    Named{"cluster.usd_per_million_tokens", "price of a million tokens"},
    Named{"cluster.nodes", "nodes"},
    Named{"cluster.devices", "devices"},
    Named{"breakdown.exposed_communication_s", "exposed communication"},
    Named{"memory.peak_bytes", "peak memory"},
    Named{"devices", "devices"},
};

constexpr std::array kParts{
    Named{"breakdown.compute_s", "compute"},
    Named{"breakdown.exposed_communication_s", "exposed communication"},
    Named{"breakdown.waiting_s", "waiting"},
    Named{"breakdown.bubble_s", "bubble"},
};

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

constexpr std::array kPhases{
    Named{"rl.rollout_s", "rollout"},
    Named{"rl.reference_s", "scoring: reference"},
    Named{"rl.reward_s", "scoring: reward model"},
    Named{"rl.training_s", "training"},
    Named{"rl.sync_s", "weight sync"},
};
constexpr std::array<std::string_view, 5> kOfTraining{
    "step_time_s", "mfu", "tokens_per_s", "tokens_per_s_per_device", "breakdown.exposed_communication_s"};

std::string suffix_of(std::string_view path, const Figures& figures) {
  if (path.ends_with(".p50")) return " (median)";
  const bool training = std::find(kOfTraining.begin(), kOfTraining.end(), path) != kOfTraining.end();
  return training && figures.number("rl.step_time_s") ? ", training alone" : "";
}

std::string parts_bar(const Figures& figures, std::span<const Named> rows) {
  std::vector<Part> parts;
  for (const Named& row : rows) {
    if (const auto value = figures.number(row.path))
      parts.push_back({term(row.name), *value, seconds_text(*value)});
  }
  return stacked_bar(parts);
}

// Of a mean over simulated courses: " (389 to 468)", its 5th to 95th percentile where they differ.
std::string range_of(const Figures& figures, std::string_view path) {
  if (!path.starts_with("cluster.") || !path.ends_with(".mean")) return "";
  const std::string stem(path.substr(0, path.rfind('.')));
  const auto low = figures.number(stem + ".p5"), high = figures.number(stem + ".p95");
  if (!low || !high || shown(stem, *low) == shown(stem, *high)) return "";
  return fmt::format(" ({} to {})", escaped(shown(stem, *low)), escaped(shown(stem, *high)));
}

// "p50", "p90", ... of one kind of latency, by the scale of all.
std::string latency_bars(const Figures& figures, const char* path, const char* name) {
  std::vector<Part> parts;
  for (const char* which : {"mean", "p50", "p90", "p95", "p99"}) {
    const auto value = figures.number(fmt::format("{}.{}", path, which));
    if (value) parts.push_back({which, *value, seconds_text(*value), colour(0)});
  }
  if (parts.empty()) return "";
  return fmt::format("<p><b>{}</b></p>\n{}", term(name), bars(parts));
}

// NICs post messages, wires carry bytes.
std::string carried_by(const Figures& tier) {
  const auto messages = tier.number("carried_messages");
  return messages ? fmt::format("{:.6g} msgs", *messages)
                  : to_text(Bytes{tier.number("carried_bytes").value_or(0)});
}

}  // namespace

RunOnPage::RunOnPage(const std::string& directory) : name(directory), figures(directory) {
  if (std::filesystem::exists(directory + "/timeline.mtl")) spans.emplace(timeline_path(directory));
  if (spans) require_one_run(directory + "/report.json", figures.report(), *spans);
}

std::vector<std::string> headline_paths(const Figures& figures) {
  std::vector<std::string> paths;
  for (const Named& row : kHeadline) {
    // Blocks of a service's cache are another thing than those that a replay asks for.
    if (row.path.starts_with("kv.") && figures.text("kind") != "kv-replay") continue;
    if (figures.number(row.path)) paths.emplace_back(row.path);
  }
  return paths;
}

std::string figure_name(std::string_view path, const Figures& figures) {
  for (const Named& row : kHeadline) {
    if (row.path == path) return term(row.name) + suffix_of(path, figures);
    if (row.path.ends_with(".p50") && path.ends_with(".mean") &&
        path.substr(0, path.rfind('.')) == row.path.substr(0, row.path.rfind('.')))
      return term(row.name) + " (mean)";
  }
  return escaped(path);
}

std::string headline(const Figures& figures) {
  std::string tiles;
  for (const std::string& path : headline_paths(figures))
    tiles += fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n",
                         escaped(shown(path, *figures.number(path))),
                         figure_name(path, figures) + range_of(figures, path));
  std::string text = "<div class=\"tiles\">" + tiles + "</div>\n";
  const auto low = figures.number("uncertainty.interval.low"),
             high = figures.number("uncertainty.interval.high");
  const std::string of = figures.text("uncertainty.interval.of");
  if (low && high)
    text += fmt::format(
        "<p class=\"soft\">{}: {} to {}, by the errors of the kernels and links that it is made of"
        "</p>\n",
        figure_name(of, figures), escaped(shown(of, *low)), escaped(shown(of, *high)));
  return text;
}

std::string breakdown(const Figures& figures) {
  std::string text = parts_bar(figures, kPhases);
  if (!text.empty())
    text = "<p>The phases of a step, one after the other</p>\n" + text + "<p>Training alone</p>\n";
  text += parts_bar(figures, kParts);
  const Value* kinds = figures.value("breakdown.by_kind");
  if (kinds == nullptr || kinds->kind != Value::Kind::kObject) return text;
  std::vector<std::vector<std::string>> rows;
  std::vector<double> order;
  for (std::size_t i = 0; i < kinds->items.size(); ++i) {
    const Figures kind(Document{"", kinds->items[i]});
    const double compute = kind.number("compute_s").value_or(0), busy = kind.number("busy_s").value_or(0);
    const auto seconds = [](double value) {
      return value > 0 ? escaped(seconds_text(value)) : std::string("-");
    };
    order.push_back(compute + busy);
    rows.push_back({escaped(spaced(kinds->keys[i])), seconds(compute + busy),
                    seconds(kind.number("exposed_s").value_or(0)),
                    seconds(kind.number("waiting_s").value_or(0))});
  }
  std::vector<std::size_t> by_time(rows.size());
  for (std::size_t i = 0; i < by_time.size(); ++i) by_time[i] = i;
  std::stable_sort(by_time.begin(), by_time.end(), [&](auto a, auto b) { return order[a] > order[b]; });
  std::vector<std::vector<std::string>> sorted;
  sorted.reserve(rows.size());
  for (const std::size_t i : by_time) sorted.push_back(rows[i]);
  return text + "<details><summary>by kind of op</summary>\n" +
         table({"op", "busy", "exposed", term("waiting")}, sorted) + "</details>\n";
}

std::string memory(const Figures& figures) {
  std::vector<Part> parts;
  for (const auto& [name, value] : figures.numbers_in("memory.by_kind"))
    parts.push_back({escaped(spaced(name)), value, to_text(Bytes{value})});
  if (parts.empty()) return "";
  const auto peak = figures.number("memory.peak_bytes"), capacity = figures.number("memory.capacity_bytes");
  std::string text = stacked_bar(parts, capacity);
  if (peak && capacity)
    text += fmt::format("<p class=\"soft\">{} of {} on the fullest device; the line is what it has</p>\n",
                        escaped(to_text(Bytes{*peak})), escaped(to_text(Bytes{*capacity})));
  return text;
}

std::string network(const Figures& figures, const std::string& directory) {
  const Value* tiers = figures.value("network.tiers");
  std::vector<std::vector<std::string>> rows;
  std::vector<Part> parts;
  for (std::size_t i = 0; tiers != nullptr && i < tiers->items.size(); ++i) {
    const Figures tier(Document{"", tiers->items[i]});
    const double busy = tier.number("busy_share").value_or(0),
                 most = tier.number("most_busy_share").value_or(0);
    parts.push_back({escaped(tier.text("tier")), busy, fmt::format("{:.1f}%", 100 * busy), colour(0)});
    rows.push_back(
        {escaped(tier.text("tier")), grouped(static_cast<std::int64_t>(tier.number("ports").value_or(0))),
         escaped(carried_by(tier)), fmt::format("{:.1f}%", 100 * busy), fmt::format("{:.1f}%", 100 * most)});
  }
  std::string text =
      bars(parts, 1.0) + table({"tier", "ports", "carried in all", "busy", "the busiest port"}, rows);
  if (const Value* shares = figures.value("network.shares_wires"); shares != nullptr && !shares->boolean)
    text +=
        "<p class=\"soft\">Transfers do not share wires at this detail, so that ports can be busy for more "
        "than 100%.</p>\n";
  std::error_code none;
  const std::string picture = directory + "/network.svg";
  const auto size = std::filesystem::file_size(picture, none);
  constexpr std::uintmax_t kMost = 400'000;
  if (!none && size <= kMost) {
    const FileBytes svg(picture);
    text += fmt::format("<div class=\"scroll fit\">{}</div>\n", std::string_view(svg.data(), svg.size()));
  }
  return text;
}

std::string latencies(const Figures& figures) {
  return latency_bars(figures, "ttft_s", "TTFT") + latency_bars(figures, "tpot_s", "TPOT") +
         latency_bars(figures, "itl_s", "ITL") + latency_bars(figures, "e2e_s", "E2E");
}

std::string service(const Figures& figures) {
  std::vector<Part> parts;
  for (const auto& [name, value] : figures.numbers_in("request_time_s"))
    parts.push_back({escaped(spaced(name)), value, seconds_text(value)});
  std::string text = stacked_bar(parts);
  const Value* pools = figures.value("pools");
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; pools != nullptr && i < pools->items.size(); ++i) {
    const Figures pool(Document{"", pools->items[i]});
    const auto count = [&](const char* key) {
      return grouped(static_cast<std::int64_t>(pool.number(key).value_or(0)));
    };
    rows.push_back({escaped(pools->keys[i]), count("devices"), count("instances"), count("iterations"),
                    fmt::format("{:.1f}%", 100 * pool.number("busy").value_or(0)),
                    fmt::format("{} of {}", count("peak_blocks"), count("blocks"))});
  }
  if (!text.empty()) text = "<p>Where the time of all requests went</p>\n" + text;
  return text + table({"pool", "devices", "instances", "iterations", "busy", "blocks of a replica"}, rows);
}

std::string expectations(const Figures& figures) {
  const Value* expected = figures.value("expect");
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; expected != nullptr && i < expected->items.size(); ++i) {
    const Figures row(Document{"", expected->items[i]});
    const std::string metric = row.text("metric");
    const auto ours = row.number("ours"), value = row.number("expected"),
               difference = row.number("difference");
    rows.push_back({escaped(metric), value ? escaped(shown(metric, *value)) : "",
                    ours ? escaped(shown(metric, *ours)) : "-",
                    difference ? fmt::format("{:+.1f}%", 100 * *difference) : "-",
                    escaped(row.text("verdict")), escaped(row.text("source"))});
  }
  return table({"figure", "published", "ours", "difference", "verdict", "source"}, rows);
}

namespace {

// Figures that stand beside measured ones, at any depth: where four in five of those would lie.
void collect_intervals(const Figures& figures, const Value& at, const std::string& path,
                       std::vector<std::vector<std::string>>& rows) {
  if (at.kind != Value::Kind::kObject) return;
  const Figures interval(Document{"", at});
  const auto low = interval.number("low"), high = interval.number("high"), ours = figures.number(path);
  if (low && high)
    return rows.push_back(
        {figure_name(path, figures), ours ? escaped(shown(path, *ours)) : "-",
         fmt::format("{} to {}", escaped(shown(path, *low)), escaped(shown(path, *high))),
         fmt::format("{:.0f} rows of {:.0f} sources, {}", interval.number("rows").value_or(0),
                     interval.number("sources").value_or(0), escaped(interval.text("class")))});
  for (std::size_t i = 0; i < at.items.size(); ++i)
    collect_intervals(figures, at.items[i], path.empty() ? at.keys[i] : path + "." + at.keys[i], rows);
}

std::string intervals(const Figures& figures) {
  const Value* of = figures.value("uncertainty.figures");
  std::vector<std::vector<std::string>> rows;
  if (of != nullptr) collect_intervals(figures, *of, "", rows);
  if (rows.empty()) return "";
  std::string text = "<p>Where four in five measured ones would lie</p>\n" +
                     table({"figure", "ours", "four in five", "by"}, rows);
  const Value* outside = figures.value("uncertainty.outside");
  for (std::size_t i = 0; outside != nullptr && i < outside->items.size(); ++i)
    text += fmt::format("<p class=\"soft\">Not covered by them: {}</p>\n", escaped(outside->items[i].text));
  return text;
}

}  // namespace

std::string trust(const Figures& figures) {
  std::vector<Part> parts;
  for (const auto& [name, value] : figures.numbers_in("uncertainty.share_of_busy_time"))
    parts.push_back({escaped(name), value, ""});
  std::string text = stacked_bar(parts);
  if (!text.empty()) text = "<p>Where the durations of ops come from, by their time</p>\n" + text;
  const Value* sources = figures.value("provenance");
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; sources != nullptr && i < sources->items.size(); ++i)
    rows.push_back({escaped(sources->keys[i]),
                    escaped(sources->items[i].kind == Value::Kind::kString ? sources->items[i].text
                                                                           : to_json(sources->items[i]))});
  for (const char* key : {"scenario", "executor", "detail", "seed"}) {
    if (const Value* value = figures.value(key))
      rows.push_back({key, escaped(value->kind == Value::Kind::kString ? value->text : to_json(*value))});
  }
  return text + intervals(figures) + "<div class=\"words\">" + table({term("provenance"), ""}, rows) +
         "</div>\n";
}

std::string all_figures(const Figures& figures) {
  constexpr std::size_t kMost = 3000;
  std::vector<std::vector<std::string>> rows;
  const auto all = figures.all();
  for (const auto& [path, value] : all) {
    if (rows.size() < kMost) rows.push_back({escaped(path), escaped(value)});
  }
  if (all.size() > kMost) rows.push_back({"", fmt::format("and {} more", all.size() - kMost)});
  return "<details><summary>every figure of report.json</summary>\n<div class=\"words\">" +
         table({"path", "value"}, rows) + "</div></details>\n";
}

}  // namespace moebius::viz
