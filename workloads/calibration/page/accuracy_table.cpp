#include "workloads/calibration/page/accuracy_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "hw/error.h"
#include "hw/new_file.h"

namespace moebius {
namespace {

struct Goal {
  double median = 0, p90 = 0;
};

Goal goal_of(const ProfileTable& table) {
  if (table.name == "dense GEMM") return {0.04, 0.12};
  if (table.name.starts_with("expert GEMMs")) return {0.08, 0.20};  // of whole expert layers
  return {0.05, 1e9};
}

std::string format_of(const ProfileTable& table) {
  std::string text{to_string(table.dtype)};
  return table.stored ? text + fmt::format(" over {}", to_string(*table.stored)) : text;
}

std::string errors_of(const Goal& goal, int rows, double median, double p90,
                      const std::string& worst_and_bias) {
  return fmt::format("{} | {:.1f} | {:.1f} | {} | {} |\n", rows, 100 * median, 100 * p90, worst_and_bias,
                     median < goal.median && p90 < goal.p90 ? "met" : "missed");
}

bool meets(const Goal& goal, const HeldOut& e) {
  return e.median < goal.median && e.p90 < goal.p90;
}

// "attention, prefill, window 128" and "expert GEMMs, short reduction" belong to what stands before.
std::string family_of(const ProfileTable& table) {
  const std::size_t end = std::min(table.name.find(", window"), table.name.find(", short reduction"));
  return fmt::format("{} | {}", table.name.substr(0, end), format_of(table));
}

std::string stack_line(const ProfileTable& table) {
  return fmt::format("{} {:.1f} / {:.1f}", table.stack, 100 * table.held_out.median,
                     100 * table.held_out.p90);
}

std::string grid_of(const ProfileTable& table) {
  std::string text = std::to_string(table.sites.size());
  for (const ProfileAxis& axis : table.axes) text += fmt::format(" x {}", axis.points.size());
  return text;
}

struct Section {
  std::string before, text, after;
};

Section section_of(const std::string& path, std::string_view name) {
  const std::string begin_mark = fmt::format("<!-- {} -->", name),
                    end_mark = fmt::format("<!-- /{} -->", name);
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::size_t begin = text.find(begin_mark + "\n"), end = text.find(end_mark + "\n");
  if (!in || begin == std::string::npos || end == std::string::npos || end < begin)
    throw input_error(fmt::format("{}: expected a section between {} and {}", path, begin_mark, end_mark));
  const std::size_t first = begin + begin_mark.size() + 1;
  return {text.substr(0, first), text.substr(first, end - first), text.substr(end)};
}

// Watts, not times; no goal was set for them.
std::string power_line(const Profile& profile) {
  const HeldOut& e = profile.power.held_out;
  if (e.rows == 0) return "";
  return fmt::format("| {} | board power | all | all | {} | {:.1f} | {:.1f} | none | | |\n",
                     profile.accelerator, e.rows, 100 * e.median, 100 * e.p90);
}

}  // namespace

std::string accuracy_summary(const std::vector<Profile>& profiles) {
  std::string text =
      "| chip | kernel | format | first stack | rows kept out | median % | p90 % | goal | further tables: "
      "median / p90 % "
      "| goal met |\n"
      "|---|---|---|---|--:|--:|--:|---|---|--:|\n";
  for (const Profile& profile : profiles) {
    std::vector<std::string> families;
    std::map<std::string, std::vector<const ProfileTable*>> tables;
    for (const ProfileTable& table : profile.tables) {
      if (table.held_out.rows == 0) continue;
      std::vector<const ProfileTable*>& list = tables[family_of(table)];
      if (list.empty()) families.push_back(family_of(table));
      list.push_back(&table);
    }
    for (const std::string& family : families) {
      const std::vector<const ProfileTable*>& list = tables[family];
      const ProfileTable& first = *list.front();
      std::vector<std::string> others;
      std::size_t met = 0;
      for (const ProfileTable* table : list) {
        met += meets(goal_of(*table), table->held_out) ? 1 : 0;
        if (table != &first) others.push_back(stack_line(*table));
      }
      const HeldOut& e = first.held_out;
      text +=
          fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {} | {} | {} of {} |\n", profile.accelerator,
                      family, first.stack, e.rows, 100 * e.median, 100 * e.p90,
                      meets(goal_of(first), e) ? "met" : "missed", fmt::join(others, "; "), met, list.size());
    }
    text += power_line(profile);
  }
  return text;
}

std::string accuracy_table(const std::vector<Profile>& profiles) {
  std::string text =
      "| chip | kernel | format | stack | sites x grid | rows kept out | median % | p90 % | worst % | bias % "
      "| goal |\n"
      "|---|---|---|---|--:|--:|--:|--:|--:|--:|---|\n";
  for (const Profile& profile : profiles) {
    for (const ProfileTable& table : profile.tables) {
      const HeldOut& e = table.held_out;
      if (e.rows == 0) continue;
      const Goal goal = goal_of(table);
      const std::string chip_and_kernel = fmt::format("| {} | {}", profile.accelerator, table.name);
      const std::string stack = fmt::format("{} | {}", format_of(table), table.stack);
      text += fmt::format("{} | {} | {} | ", chip_and_kernel, stack, grid_of(table)) +
              errors_of(goal, e.rows, e.median, e.p90,
                        fmt::format("{:.0f} | {:+.1f}", 100 * e.worst, 100 * e.bias));
      for (const HeldOutPart& part : e.parts)
        text += fmt::format("{}: {} | {} | | ", chip_and_kernel, part.name, stack) +
                errors_of(goal, part.rows, part.median, part.p90, "|");
    }
  }
  return text;
}

void write_section(const std::string& path, std::string_view name, const std::string& text) {
  const Section section = section_of(path, name);
  write_file(path, section.before + text + section.after);
}

std::string read_section(const std::string& path, std::string_view name) {
  return section_of(path, name).text;
}

}  // namespace moebius
