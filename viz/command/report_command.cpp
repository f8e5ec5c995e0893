#include "viz/command/report_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "hw/new_file.h"
#include "hw/units.h"
#include "viz/page/run_page.h"
#include "workloads/report/run_directory.h"

namespace moebius {

Command report_command() {
  struct Arguments {
    std::string run, other, html;
  };
  const auto arguments = std::make_shared<Arguments>();
  const auto body = [arguments] {
    for (const std::string& from : {arguments->run, arguments->other}) {
      if (from.empty()) continue;
      if (std::filesystem::is_regular_file(from))
        throw input_error(fmt::format("report: expected a run's directory, found the file {}", from));
      for (const std::string& file : files_of_run(from)) require_apart("--html", arguments->html, file);
    }
    const viz::RunOnPage run(arguments->run);
    const std::string text = arguments->other.empty()
                                 ? viz::run_page(run)
                                 : viz::comparison_page(run, viz::RunOnPage(arguments->other));
    write_file(arguments->html, text);
    fmt::print(stderr, "{}: {}\n", arguments->html, to_text(Bytes{static_cast<double>(text.size())}));
    return 0;
  };
  return {"report",
          "write a run, or two beside each other, as one HTML page",
          {{.name = "RUN", .target = &arguments->run, .help = "a run's directory", .required = true},
           {"RUN_B", &arguments->other, "another one to compare it with"},
           {.name = "--html", .target = &arguments->html, .help = "file of the page", .required = true}},
          body};
}

}  // namespace moebius
