#include "viz/command/view_command.h"

#include <memory>
#include <string>

#include "hw/error.h"
#ifdef MOEBIUS_VIEWER
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "hw/units.h"
#include "viz/ui/app.h"
#include "viz/ui/viewer.h"
#include "workloads/scenario/extended_document.h"
#endif

namespace moebius {
namespace {

struct Arguments {
  std::vector<std::string> runs;
  std::string screenshot, screen, range, size, scale, script, scenario;
  bool light = false, windowless = false;
};

#ifdef MOEBIUS_VIEWER

int whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

void read_size(const std::string& text, viz::ViewRequest& request) {
  if (text.empty()) return;
  const std::size_t cross = std::min(text.find('x'), text.size() - 1);
  request.width = whole_number(std::string_view(text).substr(0, cross));
  request.height = whole_number(std::string_view(text).substr(cross + 1));
  const auto fits = [](int pixels) { return pixels >= 200 && pixels <= 8192; };
  if (!fits(request.width) || !fits(request.height))
    throw input_error(
        fmt::format("--size: expected WIDTHxHEIGHT in pixels, 200 to 8192 each, found \"{}\"", text));
}

void read_range(const std::string& text, viz::ViewRequest& request) {
  if (text.empty()) return;
  const std::size_t dots = text.find("..");
  const auto from =
      dots == std::string::npos ? std::nullopt : parse_quantity(text.substr(0, dots), Dimension::kTime);
  const auto to =
      dots == std::string::npos ? std::nullopt : parse_quantity(text.substr(dots + 2), Dimension::kTime);
  if (!from || !to || !(*from < *to))
    throw input_error(
        fmt::format("--range: expected two times such as \"1.2 s..1.4 s\", found \"{}\"", text));
  if (!request.screen.empty() && request.screen != viz::kScreenNames.front())
    throw input_error(fmt::format(
        "--range: expected the screen {}, which alone shows a stretch of the run, found --screen {}",
        viz::kScreenNames.front(), request.screen));
  request.range = {*from, *to};
}

std::vector<std::string> screens() {
  return {viz::kScreenNames.begin(), viz::kScreenNames.end()};
}

void read_screen(const std::string& text) {
  const std::vector<std::string> names = screens();
  if (text.empty() || std::find(names.begin(), names.end(), text) != names.end()) return;
  throw input_error(fmt::format("--screen: expected one of {}, found \"{}\"{}", fmt::join(names, ", "), text,
                                suggestion(text, names)));
}

int run(const Arguments& given) {
  viz::ViewRequest request;
  request.runs = given.runs;
  request.scenario = given.scenario;
  request.screenshot = given.screenshot;
  request.screen = given.screen;
  request.light = given.light;
  request.script = given.script;
  request.windowless = given.windowless;
  if (const std::string& file = request.screenshot; !file.empty() && !file.ends_with(".png"))
    throw input_error(fmt::format("--screenshot: expected a file named .png, found \"{}\"", file));
  if (request.runs.size() > 2)
    throw input_error(fmt::format("view: expected at most two runs, found {}", request.runs.size()));
  if (request.windowless && request.script.empty() && request.screenshot.empty())
    throw input_error(
        "view: --no-window shows nothing by itself: expected --ui-script FILE or --screenshot FILE");
  if (!given.scenario.empty()) load_scenario(given.scenario);  // one that cannot be read is told now
  read_screen(given.screen);
  read_size(given.size, request);
  read_range(given.range, request);
  if (!given.scale.empty()) {
    const auto [end, error] =
        std::from_chars(given.scale.data(), given.scale.data() + given.scale.size(), request.scale);
    if (error != std::errc() || end != given.scale.data() + given.scale.size() ||
        !(request.scale >= 0.5 && request.scale <= 4))
      throw input_error(fmt::format("--scale: expected a number from 0.5 to 4, found \"{}\"", given.scale));
  }
  return viz::view(request);
}

#else

std::vector<std::string> screens() {
  return {};
}

int run(const Arguments&) {
  throw run_error(
      "view: this binary was built without the viewer (libimgui-dev and libstb-dev were missing); "
      "moebius report RUN --html FILE writes a page, moebius export a trace for ui.perfetto.dev");
}

#endif

}  // namespace

Command view_command() {
  const auto arguments = std::make_shared<Arguments>();
  return {"view",
          "look at a run, or at two beside each other",
          {{"RUN", &arguments->runs, "a run's directory or timeline; at most two"},
           {"--screenshot", &arguments->screenshot, "write this PNG instead of opening a window"},
           {.name = "--screen",
            .target = &arguments->screen,
            .help = "timeline, compare, network, memory, serving, experts, tiers or scenario",
            .values = screens()},
           {"--range", &arguments->range, "what the timeline shows: \"1.2 s..1.4 s\""},
           {"--size", &arguments->size, "of the window or picture: 1600x900"},
           {"--scale", &arguments->scale, "of text and widgets: 0.5 to 4"},
           {"--light", &arguments->light, "light colours"},
           {"--scenario", &arguments->scenario, "whose inputs the scenario screen changes"},
           {"--ui-script", &arguments->script, "input to play, see viz/README.md"},
           {"--no-window", &arguments->windowless, "play the script without a window"}},
          [arguments] { return run(*arguments); }};
}

}  // namespace moebius
