#include "viz/command/import_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "hw/document.h"
#include "hw/error.h"
#include "hw/json_text.h"
#include "hw/units.h"
#include "viz/import/chrome_reader.h"
#include "workloads/perform/perform.h"
#include "workloads/report/run_directory.h"

namespace moebius {

namespace {

std::string kinds_of(const viz::ForeignTimes& times) {
  std::string rows;
  for (const auto& [kind, time] : times.kinds) {
    rows += fmt::format("{}\n      {}: {{\"{}\": {}", rows.empty() ? "" : ",", json_string(to_string(kind)),
                        is_communication(kind) ? "busy_s" : "compute_s", time.busy);
    rows += time.waiting > 0 ? fmt::format(", \"waiting_s\": {}}}", time.waiting) : "}";
  }
  return rows;
}

// The report of a run of which only its timeline is known.
std::string report_of(const Timeline& timeline, const viz::ForeignTimes& times, const std::string& name) {
  std::int64_t end = 0;
  for (const Span& span : timeline.spans) end = std::max(end, span.end.ns);
  return fmt::format(
      "{{\n  \"scenario\": {},\n  \"kind\": \"imported\",\n  \"executor\": \"imported\",\n  \"detail\": "
      "\"\",\n"
      "  \"seed\": 0,\n  \"run_time_s\": {},\n  \"rows\": {},\n  \"ops\": {},\n  \"breakdown\": "
      "{{\"other_s\": {}, \"by_kind\": {{{}\n"
      "  }}}},\n  \"provenance\": {{\"imported\": {}, \"moebius\": {}}},\n  \"uncertainty\": {{}}\n}}\n",
      json_string(name), static_cast<double>(end) * 1e-9, timeline.class_ranks.size(), timeline.spans.size(),
      times.other, kinds_of(times), json_string(name), json_string(kVersion));
}

std::string kinds_text(const viz::ForeignTimes& times) {
  double known = 0;
  for (const auto& [kind, time] : times.kinds) known += time.busy;
  if (times.other == 0) return "";
  const auto text = [](double seconds) {  // summed over rows: may be longer than a Time
    return seconds > 1e9 ? fmt::format("{:.4g} s", seconds) : to_text(time_from_seconds(seconds));
  };
  return fmt::format(
      "ops by their names: {}; {} of slices whose names say no kind of op, which stand in no share of one\n",
      text(known), text(times.other));
}

// What an import wrote may be written again; a run that was simulated or executed stays.
void require_no_run(const std::string& directory) {
  const std::string file = (std::filesystem::path(directory) / "report.json").string();
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return;
  const Document report = load_document(file);
  const Value* kind = report.root.kind == Value::Kind::kObject ? report.root.find("kind") : nullptr;
  if (kind == nullptr || kind->text != "imported")
    throw input_error(fmt::format(
        "--out: expected a new directory or one that an import wrote, found a run in {}", directory));
}

}  // namespace

Command import_command() {
  struct Arguments {
    std::string file, out;
    bool chrome = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  const auto body = [arguments] {
    require_no_run(arguments->out);
    // Names of files are any bytes, those in reports are not.
    const std::string name = shown_characters(std::filesystem::path(arguments->file).filename().string());
    std::error_code none;
    if (std::filesystem::is_directory(arguments->file, none))
      throw input_error(fmt::format("import: expected a profile, found the directory {}", arguments->file));
    viz::ForeignTrace trace = viz::read_chrome_trace(arguments->file);
    const std::int64_t left_out = trace.left_out;
    const viz::ForeignTimes times = viz::times_of(trace);
    const Timeline timeline = viz::timeline_of(std::move(trace), name);
    const std::string json = report_of(timeline, times, name);
    const std::string text =
        fmt::format("{}: {} slices on {} rows, {} samples of counters; {} other events left out\n{}", name,
                    timeline.spans.size(), timeline.class_ranks.size(), timeline.samples.size(), left_out,
                    kinds_text(times));
    write_run(arguments->out, {json, text}, timeline);
    fmt::print(stderr, "{}", text);
    return 0;
  };
  return {"import",
          "take a profile recorded elsewhere for a run, to look at it or to compare it",
          {{.name = "FILE",
            .target = &arguments->file,
            .help = "the profile, plain or packed (.gz)",
            .required = true},
           {"--chrome", &arguments->chrome, "it is in Chrome's Trace Event Format (the only one so far)"},
           {.name = "--out", .target = &arguments->out, .help = "directory of the run", .required = true}},
          body};
}

}  // namespace moebius
