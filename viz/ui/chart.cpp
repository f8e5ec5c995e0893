#include "viz/ui/chart.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "hw/units.h"
#include "viz/data/axis.h"
#include "viz/ui/glossary.h"

namespace moebius::viz {
namespace {

float font() {
  return ImGui::GetFontSize();
}

ImVec2 text_size(const std::string& text) {
  return ImGui::CalcTextSize(text.data(), text.data() + text.size());
}

void put_text(ImVec2 at, Colour colour, const std::string& text) {
  ImGui::GetWindowDrawList()->AddText({std::floor(at.x), std::floor(at.y)}, colour, text.data(),
                                      text.data() + text.size());
}

constexpr std::size_t kNamesShown = 24;

float legend_width(const std::string& label) {
  return text_size(label).x + 2.4f * font();
}

// A line of text with the panel behind it, so that curves below it do not spoil it.
void put_label(const Theme& theme, ImVec2 at, Colour colour, const std::string& text) {
  const ImVec2 size = text_size(text);
  ImGui::GetWindowDrawList()->AddRectFilled({at.x - 1, at.y}, {at.x + size.x + 1, at.y + size.y},
                                            with_alpha(theme.panel, 190));
  put_text(at, colour, text);
}

// Moments below a chart whose columns lie from x to x + width.
void time_axis(const Theme& theme, const TimeWindow& window, ImVec2 at, float width) {
  const AxisMarks marks = axis_marks(window.begin, window.end, static_cast<double>(width / (font() * 8)));
  for (int i = 0; i < marks.count; ++i) {
    const float x = std::floor(at.x + width * static_cast<float>(window.share_of(marks.at(i))));
    ImGui::GetWindowDrawList()->AddRectFilled({x, at.y}, {x + 1, at.y + 4}, theme.faint_text);
    const std::string text = axis_text(marks.at(i), marks.step);
    if (x + 3 + text_size(text).x <= at.x + width) put_text({x + 3, at.y + 1}, theme.faint_text, text);
  }
}

void legend(const Theme& theme, const std::vector<ChartPart>& parts,
            const std::function<std::string(double)>& text) {
  const float width = ImGui::GetContentRegionAvail().x;
  float used = 0;
  for (const ChartPart& part : parts) {
    const std::string label = text ? part.name + " " + text(part.value) : part.name;
    const float needed = legend_width(label);
    if (used > 0 && used + needed <= width) {
      ImGui::SameLine(0, 0);
    } else {
      used = 0;
    }
    used += needed;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float box = std::floor(font() * 0.7f);
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + 2}, {at.x + box, at.y + 2 + box}, part.colour);
    put_text({at.x + box + 4, at.y}, theme.text, label);
    ImGui::Dummy({needed, font() + 2});
    explain(part.name);
  }
}

}  // namespace

void term(const std::string& word) {
  ImGui::TextUnformatted(word.c_str());
  explain(word);
}

void explain(const std::string& word) {
  if (!ImGui::IsItemHovered()) return;
  const std::string meaning = glossary(word);
  if (!meaning.empty()) ImGui::SetTooltip("%s", meaning.c_str());
}

void stacked_bar(const Theme& theme, const StackedBar& bar) {
  double sum = 0;
  for (const ChartPart& part : bar.parts) sum += part.value;
  const double whole = std::max({bar.full, bar.mark > 0 ? bar.mark : sum, 1e-300});  // what shares are of
  const double full = std::max({bar.full, sum, bar.mark * 1.02, 1e-300});
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x - 1, height = std::floor(font() * 2.2f);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, {at.x + width, at.y + height}, theme.panel);
  double before = 0;
  ImGui::InvisibleButton(fmt::format("bar{}", static_cast<const void*>(&bar)).c_str(), {width, height});
  for (const ChartPart& part : bar.parts) {
    const float x0 = at.x + width * static_cast<float>(before / full);
    before += part.value;
    const float x1 = at.x + width * static_cast<float>(before / full);
    draw->AddRectFilled({x0, at.y}, {x1, at.y + height}, part.colour);
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (ImGui::IsItemHovered() && mouse.x >= x0 && mouse.x < x1)
      ImGui::SetTooltip("%s: %s (%s)\n%s", part.name.c_str(), bar.text(part.value).c_str(),
                        share_text(part.value / whole).c_str(), glossary(part.name).c_str());
  }
  if (bar.mark > 0) {
    const float x = std::floor(at.x + width * static_cast<float>(bar.mark / full));
    draw->AddRectFilled({x - 1, at.y - 4}, {x + 1, at.y + height + 4}, theme.warning);
    const std::string label = bar.mark_name + " " + bar.text(bar.mark);
    put_text({std::max(at.x, x - text_size(label).x - 4), at.y + height + 3}, theme.warning, label);
    ImGui::Dummy({1, font()});
  }
  legend(theme, bar.parts, bar.text);
}

void bars(const Theme& theme, const Bars& given) {
  double full = given.full > 0 ? given.full : given.mark;
  float names = 0, values = 0;
  for (const auto* rows : {&given.rows, &given.second}) {
    for (const ChartPart& row : *rows) {
      if (given.full == 0) full = std::max(full, row.value);
      names = std::max(names, text_size(row.name).x);
      values = std::max(values, text_size(given.text(row.value)).x);
    }
  }
  const bool pairs = given.second.size() == given.rows.size();
  const float width = std::max(ImGui::GetContentRegionAvail().x - names - values - 16, 20.0f);
  const ImVec2 top = ImGui::GetCursorScreenPos();
  for (std::size_t i = 0; i < given.rows.size(); ++i) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float line = std::floor(font() + 3);
    ImGui::Dummy({names + values + width, pairs ? 2 * line + 2 : line});
    explain(given.rows[i].name);
    put_text(at, theme.text, given.rows[i].name);
    const auto bar = [&](const ChartPart& part, float y) {
      const float length = width * static_cast<float>(full > 0 ? std::clamp(part.value / full, 0.0, 1.0) : 0);
      const float x = std::floor(at.x + names + 8);
      ImGui::GetWindowDrawList()->AddRectFilled(
          {x, y + 1}, {x + std::max(std::floor(length), 1.0f), y + line - 2}, part.colour);
      put_text({x + length + 4, y}, theme.text, given.text(part.value));
    };
    bar(given.rows[i], at.y);
    if (pairs) bar(given.second[i], at.y + line);
  }
  if (given.mark <= 0 || given.mark > full) return;
  const float x = std::floor(top.x + names + 8 + width * static_cast<float>(given.mark / full));
  ImGui::GetWindowDrawList()->AddLine({x, top.y}, {x, ImGui::GetCursorScreenPos().y - 4}, theme.warning);
}

void line_chart(const Theme& theme, const LineChart& chart) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = std::max(std::floor(ImGui::GetContentRegionAvail().x - 1), 10.0f),
              height = chart.height;
  double high = chart.limit, low = 0;
  for (const CounterTrack* track : chart.tracks)
    high = std::max(high, track->all().high), low = std::min(low, track->all().low);
  if (high <= low) high = low + 1;
  high += 0.05 * (high - low);
  const auto y_of = [&](double value) {
    return std::floor(at.y + height * static_cast<float>(1 - (value - low) / (high - low)));
  };
  draw->AddRectFilled(at, {at.x + width, at.y + height}, theme.panel);
  const AxisMarks marks = axis_marks(low, high, 4);
  for (int i = 0; i < marks.count; ++i)
    draw->AddRectFilled({at.x, y_of(marks.at(i))}, {at.x + width, y_of(marks.at(i)) + 1}, theme.grid);
  ImGui::InvisibleButton(fmt::format("lines{}", static_cast<const void*>(chart.tracks.data())).c_str(),
                         {width, height});
  const bool hovered = ImGui::IsItemHovered();
  const double per_pixel = chart.window.length() / static_cast<double>(width);
  const int columns = static_cast<int>(std::ceil(width));
  for (std::size_t i = 0; i < chart.tracks.size(); ++i) {
    const Colour colour = theme.series(static_cast<int>(i));
    float last = -1;
    for (int column = 0; column < columns; ++column) {
      const double to = chart.window.begin + per_pixel * (column + 1);
      if (to < 0) continue;
      const double from = std::max(to - per_pixel, 0.0);  // a run has no values before it begins
      const Extent extent =
          chart.tracks[i]->between(static_cast<std::int64_t>(from), static_cast<std::int64_t>(to));
      float top = y_of(extent.high), bottom = y_of(extent.low);
      if (last >= 0) top = std::min(top, last), bottom = std::max(bottom, last);
      const float x = at.x + static_cast<float>(column);
      draw->AddRectFilled({x, top}, {x + 1, bottom + 2}, colour);
      last = y_of(extent.low);
    }
  }
  for (int i = 0; i < marks.count; ++i) {
    const float line = y_of(marks.at(i)), above = line - font() - 1;  // the highest: below its line
    put_label(theme, {at.x + 3, above < at.y ? line + 2 : above}, theme.faint_text, chart.text(marks.at(i)));
  }
  for (const double mark : chart.marks) {
    const float x = std::floor(at.x + width * static_cast<float>(chart.window.share_of(mark)));
    draw->AddRectFilled({x, at.y}, {x + 1, at.y + height}, theme.warning);
  }
  if (chart.limit > 0) {
    draw->AddRectFilled({at.x, y_of(chart.limit)}, {at.x + width, y_of(chart.limit) + 2}, theme.warning);
    const std::string label = chart.limit_name + " " + chart.text(chart.limit);
    put_text({at.x + width - text_size(label).x - 4, y_of(chart.limit) + 3}, theme.warning, label);
  }
  if (hovered) {
    const double time = chart.window.at(static_cast<double>((ImGui::GetIO().MousePos.x - at.x) / width));
    std::string text = "at " + seconds_text(time * 1e-9);
    for (std::size_t i = 0; i < chart.tracks.size() && i < kNamesShown; ++i)
      text += fmt::format("\n{}: {}", chart.names[i],
                          chart.text(chart.tracks[i]->at(static_cast<std::int64_t>(time))));
    ImGui::SetTooltip("%s", text.c_str());
  }
  if (!chart.has_ruler) {
    time_axis(theme, chart.window, {at.x, at.y + height}, width);
    ImGui::Dummy({width, font()});
  }
  std::vector<ChartPart> names;
  for (std::size_t i = 0; i < chart.names.size() && i < kNamesShown; ++i)
    names.push_back({chart.names[i], 0, theme.series(static_cast<int>(i))});
  legend(theme, names, nullptr);
}

float legend_height(const LineChart& chart, float width) {
  float used = 0;
  int lines = 1;
  for (std::size_t i = 0; i < chart.names.size() && i < kNamesShown; ++i) {
    const float needed = legend_width(chart.names[i]);
    if (used > 0 && used + needed > width) ++lines, used = 0;
    used += needed;
  }
  return static_cast<float>(lines) * (font() + 2 + ImGui::GetStyle().ItemSpacing.y);
}

bool heat_chart(const Theme& theme, const Heat& heat, std::size_t& row, std::size_t& column) {
  float names = heat.names;
  for (const std::string& name : heat.rows) names = std::max(names, text_size(name).x);
  names = std::ceil(names) + 8;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = std::max(std::floor(ImGui::GetContentRegionAvail().x - names - 1), 10.0f);
  const std::size_t columns = heat.values.empty() ? 0 : heat.values.front()->size();
  const float height = heat.row_height * static_cast<float>(heat.rows.size());
  if (columns == 0 || height == 0) return false;
  ImGui::InvisibleButton(fmt::format("heat{}", static_cast<const void*>(heat.values.front())).c_str(),
                         {names + width, height});
  const auto x_of = [&](std::size_t c) {
    return std::floor(at.x + names + width * static_cast<float>(c) / static_cast<float>(columns));
  };
  for (std::size_t r = 0; r < heat.rows.size(); ++r) {
    const float y = at.y + heat.row_height * static_cast<float>(r);
    put_text({at.x, y + (heat.row_height - font()) / 2}, theme.text, heat.rows[r]);
    for (std::size_t c = 0; c < columns;) {
      std::size_t end = c + 1;
      const Colour colour = theme.heat((*heat.values[r])[c]);
      while (end < columns && theme.heat((*heat.values[r])[end]) == colour) ++end;
      draw->AddRectFilled({x_of(c), y}, {x_of(end), y + heat.row_height - 1}, colour);
      c = end;
    }
  }
  const bool hovered = ImGui::IsItemHovered(), clicked = ImGui::IsMouseClicked(0);
  if (heat.window.length() > 0) {
    time_axis(theme, heat.window, {at.x + names, at.y + height}, width);
    ImGui::Dummy({width, font()});
  }
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (!hovered || mouse.x < at.x + names) return false;
  row = std::min(static_cast<std::size_t>((mouse.y - at.y) / heat.row_height), heat.rows.size() - 1);
  column = std::min(static_cast<std::size_t>((mouse.x - at.x - names) / width * static_cast<float>(columns)),
                    columns - 1);
  if (heat.tooltip) ImGui::SetTooltip("%s", heat.tooltip(row, column).c_str());
  return clicked;
}

void heat_scale(const Theme& theme) {
  constexpr int kSteps = 100;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string low = "0%", high = "100% of a wire's capacity";
  const float width = std::floor(font() * 12), x = std::floor(at.x + text_size(low).x + 4);
  put_text(at, theme.faint_text, low);
  for (int i = 0; i < kSteps; ++i) {
    const float from = x + width * static_cast<float>(i) / kSteps, to = x + width * (i + 1.0f) / kSteps;
    ImGui::GetWindowDrawList()->AddRectFilled({from, at.y + 1}, {to, at.y + font()}, theme.heat(i / 99.0));
  }
  put_text({x + width + 4, at.y}, theme.faint_text, high);
  ImGui::Dummy({width, font() + 4});
}

std::string bytes_text(double bytes) {
  return to_text(Bytes{bytes});
}

std::string seconds_text(double seconds) {
  if (seconds < 0) return fmt::format("-{}", seconds_text(-seconds));
  return to_text(time_from_seconds(std::min(seconds, 1e9)));
}

std::string share_text(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string count_text(double count) {
  if (std::abs(count) < 1e15 && count == std::floor(count)) {
    std::string digits = fmt::format("{:.0f}", std::abs(count));
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
    return count < 0 ? fmt::format("-{}", digits) : digits;
  }
  return fmt::format("{:.4g}", count);
}

std::string axis_text(double ns, double step) {
  if (std::abs(ns) < step / 2) return "0";
  constexpr struct {
    double ns;
    const char* name;
  } kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  for (const auto& unit : kUnits) {
    if (std::max(std::abs(ns), step) < unit.ns && unit.ns > 1) continue;
    const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit.ns) - 1e-9)), 0, 9);
    return fmt::format("{:.{}f} {}", ns / unit.ns, decimals, unit.name);
  }
  return "0";
}

}  // namespace moebius::viz
