#include "viz/command/export_command.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "hw/error.h"
#include "hw/new_file.h"
#include "viz/export/chrome_trace.h"
#include "viz/export/perfetto_trace.h"
#include "workloads/report/run_directory.h"

namespace moebius {

Command export_command() {
  struct Arguments {
    std::string run, chrome, perfetto;
  };
  const auto arguments = std::make_shared<Arguments>();
  const auto body = [arguments] {
    const auto& [run, chrome, perfetto] = *arguments;
    if (chrome.empty() && perfetto.empty())
      throw input_error("export: expected --chrome FILE or --perfetto FILE, found neither");
    require_apart("--perfetto", perfetto, chrome);
    for (const std::string& file : files_of_run(run)) {
      require_apart("--chrome", chrome, file);
      require_apart("--perfetto", perfetto, file);
    }
    const SpanColumns spans(timeline_path(run));
    if (spans.size() == 0 && spans.tables().samples.empty())
      throw input_error(fmt::format(
          "{}: nothing to export: the run kept neither spans nor samples of counters", timeline_path(run)));
    if (!chrome.empty()) viz::export_chrome(spans, chrome);
    if (!perfetto.empty()) viz::export_perfetto(spans, perfetto);
    fmt::print(stderr, "{} spans, {} samples of counters\n", spans.size(), spans.tables().samples.size());
    return 0;
  };
  return {
      "export",
      "write a run for chrome://tracing or ui.perfetto.dev",
      {{.name = "RUN", .target = &arguments->run, .help = "a run's directory or timeline", .required = true},
       {"--chrome", &arguments->chrome, "file in Chrome's Trace Event Format (JSON)"},
       {"--perfetto", &arguments->perfetto, "file in Perfetto's protobuf"}},
      body};
}

}  // namespace moebius
