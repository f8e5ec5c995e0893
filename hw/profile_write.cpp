#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "hw/json_text.h"
#include "hw/profile.h"
#include "hw/profile_device.h"

namespace moebius {
namespace {

using Out = std::back_insert_iterator<std::string>;

// One object of a list in the file, behind a comma but for the first.
void begin_item(Out& out, bool first) {
  fmt::format_to(out, "{}\n    {{", first ? "" : ",");
}

void write_reference(Out& out, const Accelerator& chip) {
  fmt::format_to(out, "  \"reference\": {{\"architecture\": {}, \"cores\": {}, \"general_cores\": {}, ",
                 json_string(chip.architecture), chip.cores, chip.general_cores);
  fmt::format_to(out,
                 "\"independent_engines\": {}, \"memory_rate\": {}, \"memory_efficiency\": {}, \"l2\": {}, ",
                 chip.independent_engines, chip.memory_rate.value, chip.memory_efficiency, chip.l2.value);
  fmt::format_to(out, "\"clock\": {}, ", chip.clock.value);
  if (chip.boost.value > 0) fmt::format_to(out, "\"boost\": {}, ", chip.boost.value);
  fmt::format_to(out, "\"power\": {}, \"kernel_floor\": {}, \"peak\": {{", chip.power.value,
                 chip.kernel_floor.seconds());
  bool first = true;
  for (int i = 0; i < kNumDTypes; ++i) {
    if (chip.peak[i].value <= 0) continue;
    fmt::format_to(out, "{}\"{}\": {}", first ? "" : ", ", to_string(static_cast<DType>(i)),
                   chip.peak[i].value);
    first = false;
  }
  fmt::format_to(out, "}}}},\n");
}

void write_names(Out& out, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    fmt::format_to(out, "{}{}", i > 0 ? ", " : "", json_string(names[i]));
}

// What a table says only when it differs from its kind and type.
void write_formats(Out& out, const ProfileTable& table) {
  if (table.stored) fmt::format_to(out, "\"stored\": \"{}\", ", to_string(*table.stored));
  if (table.includes.empty()) return;
  fmt::format_to(out, "\"includes\": [");
  write_names(out, table.includes);
  fmt::format_to(out, "], ");
}

void write_keys(Out& out, const ProfileTable& table) {
  fmt::format_to(out, ",\n      \"site\": [");
  for (std::size_t i = 0; i < table.site_keys.size(); ++i)
    fmt::format_to(out, "{}\"{}\"", i > 0 ? ", " : "", to_string(table.site_keys[i]));
  fmt::format_to(out, "],\n      \"axes\": [");
  for (std::size_t i = 0; i < table.axes.size(); ++i)
    fmt::format_to(out, "{}{{\"key\": \"{}\", \"points\": [{}]}}", i > 0 ? ", " : "",
                   to_string(table.axes[i].key), fmt::join(table.axes[i].points, ", "));
  fmt::format_to(out, "]");
}

void write_where(Out& out, const ProfileTable& table) {
  if (table.where.empty()) return;
  fmt::format_to(out, ",\n      \"where\": [");
  for (std::size_t i = 0; i < table.where.size(); ++i)
    fmt::format_to(out, "{}{{\"key\": \"{}\", \"low\": {}, \"high\": {}}}", i > 0 ? ", " : "",
                   to_string(table.where[i].key), table.where[i].low, table.where[i].high);
  fmt::format_to(out, "]");
}

void write_grid(Out& out, const ProfileTable& table) {
  fmt::format_to(out, ",\n      \"sites\": [");
  for (std::size_t i = 0; i < table.sites.size(); ++i)
    fmt::format_to(out, "{}\"{}\"", i > 0 ? ", " : "", fmt::join(table.sites[i], " "));
  fmt::format_to(out, "],\n      \"microseconds\": [");
  const std::size_t grid = table.grid_size();
  for (std::size_t i = 0; i < table.microseconds.size(); ++i) {
    fmt::format_to(out, "{}", i % grid > 0 ? " " : (i > 0 ? "\",\n        \"" : "\n        \""));
    if (std::isnan(table.microseconds[i])) {
      fmt::format_to(out, "-");
    } else {
      fmt::format_to(out, "{}", table.microseconds[i]);
    }
  }
  fmt::format_to(out, "\"]");
}

void write_parts(Out& out, const std::vector<HeldOutPart>& parts) {
  if (parts.empty()) return;
  fmt::format_to(out, ", \"parts\": [");
  for (const HeldOutPart& part : parts)
    fmt::format_to(out, "{}{{\"name\": {}, \"rows\": {}, \"median\": {:.4f}, \"p90\": {:.4f}}}",
                   &part == parts.data() ? "" : ", ", json_string(part.name), part.rows, part.median,
                   part.p90);
  fmt::format_to(out, "]");
}

void write_errors(Out& out, const HeldOut& held_out, const std::vector<RejectedRows>& rejected,
                  std::string_view line) {
  fmt::format_to(out,
                 "\"held_out\": {{\"rows\": {}, \"mean\": {:.4f}, \"median\": {:.4f}, \"p90\": {:.4f}, "
                 "\"worst\": {:.4f}",
                 held_out.rows, held_out.mean, held_out.median, held_out.p90, held_out.worst);
  if (held_out.rows > 0) fmt::format_to(out, ", \"bias\": {:.4f}", held_out.bias);
  if (!held_out.quantiles.empty())
    fmt::format_to(out, ", \"quantiles\": \"{:.3g}\"", fmt::join(held_out.quantiles, " "));
  write_parts(out, held_out.parts);
  fmt::format_to(out, "}},{}", line);
  fmt::format_to(out, "\"rejected\": [");
  for (std::size_t i = 0; i < rejected.size(); ++i)
    fmt::format_to(out, "{}{{\"rows\": {}, \"reason\": {}}}", i > 0 ? ", " : "", rejected[i].rows,
                   json_string(rejected[i].reason));
  fmt::format_to(out, "]");
}

void write_power(Out& out, const ProfilePower& power) {
  fmt::format_to(out,
                 "  \"power\": {{\n    \"idle_watts\": {}, \"limit_watts\": {}, \"joule_per_byte\": {}, ",
                 power.idle, power.limit, power.joule_per_byte);
  fmt::format_to(out, "\"joule_per_flop\": {{");
  bool first = true;
  for (int i = 0; i < kNumDTypes; ++i) {
    const double joules = power.joule_per_flop[static_cast<std::size_t>(i)];
    if (joules <= 0) continue;
    fmt::format_to(out, "{}\"{}\": {}", first ? "" : ", ", to_string(static_cast<DType>(i)), joules);
    first = false;
  }
  fmt::format_to(out, "}},\n    \"source\": {}, \"note\": {}", json_string(power.source),
                 json_string(power.note));
  if (!power.carried_from.empty())
    fmt::format_to(out, ", \"carried_from\": {}", json_string(power.carried_from));
  fmt::format_to(out, ",\n    ");
  write_errors(out, power.held_out, power.rejected, "\n    ");
  fmt::format_to(out, "\n  }},\n");
}

void write_table(Out& out, const ProfileTable& table) {
  fmt::format_to(out, "\n      \"name\": {},\n      \"kinds\": [", json_string(table.name));
  write_names(out, table.kinds);
  fmt::format_to(out, "],\n      \"dtype\": \"{}\", ", to_string(table.dtype));
  write_formats(out, table);
  fmt::format_to(out,
                 "\"stack\": {}, \"source\": {}, \"cores\": {}, \"clocks\": \"{}\", \"values\": \"{}\", ",
                 json_string(table.stack), json_string(table.source), table.cores,
                 table.sustained ? "sustained" : "burst", table.fitted ? "fitted" : "measured");
  if (table.hot) fmt::format_to(out, "\"hot\": true, ");
  if (table.when_named) fmt::format_to(out, "\"when_named\": true, ");
  fmt::format_to(out, "\"in_sample\": {},\n      \"note\": {}", table.in_sample, json_string(table.note));
  if (table.limited_from > 0)
    fmt::format_to(out, ",\n      \"power_limited_from_us\": {}", table.limited_from);
  if (table.spread > 0) fmt::format_to(out, ",\n      \"spread\": {:.4f}", table.spread);
  if (table.fit_error > 0) fmt::format_to(out, ",\n      \"fit_error\": {:.4f}", table.fit_error);
  write_where(out, table);
  write_keys(out, table);
  fmt::format_to(out, ",\n      ");
  write_errors(out, table.held_out, table.rejected, "\n      ");
  write_grid(out, table);
}

}  // namespace

std::string to_json(const Profile& profile) {
  std::string text;
  Out out(text);
  fmt::format_to(out, "{{\n  \"format\": \"moebius-profile-1\",\n  \"accelerator\": {},\n",
                 json_string(profile.accelerator));
  write_reference(out, profile.reference);
  fmt::format_to(out, "  \"sources\": [");
  for (const ProfileSource& source : profile.sources) {
    begin_item(out, &source == profile.sources.data());
    fmt::format_to(out, "\"key\": {}, \"text\": {}, \"licence\": {}, \"date\": {}}}", json_string(source.key),
                   json_string(source.text), json_string(source.licence), json_string(source.date));
  }
  fmt::format_to(out, "\n  ],\n");
  if (profile.power.limit > 0) write_power(out, profile.power);
  if (profile.device) fmt::format_to(out, "  \"device\": {},\n", to_json(*profile.device, "    "));
  fmt::format_to(out, "  \"tables\": [");
  for (const ProfileTable& table : profile.tables) {
    begin_item(out, &table == profile.tables.data());
    write_table(out, table);
    fmt::format_to(out, "\n    }}");
  }
  fmt::format_to(out, "\n  ]\n}}\n");
  return text;
}

}  // namespace moebius
