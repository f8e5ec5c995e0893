#include "viz/ui/viewer.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/units.h"
#include "viz/ui/headless.h"
#include "viz/window/window.h"
#include "workloads/report/run_directory.h"

namespace moebius::viz {
namespace {

double length_of(const App& app) {
  double longest = 0;
  for (const auto& run : app.runs) longest = std::max(longest, run->length() * 1e-9);
  return longest;
}

// Nothing of any run lies in it: an empty picture would look like a run that does nothing.
void require_within(const App& app, const ViewRequest& request) {
  const double longest = length_of(app);
  if (app.runs.empty() || request.range->begin_s < longest) return;
  throw input_error(fmt::format("--range: begins at {}, after the end of the run at {}",
                                moebius::seconds_text(request.range->begin_s),
                                moebius::seconds_text(longest)));
}

void prepare(App& app, const ViewRequest& request) {
  for (const std::string& run : request.runs) {
    app.open(run);
    const bool shown = request.screenshot.empty() && request.script.empty();
    if (!app.open_trouble.empty() && !shown) throw input_error(app.open_trouble);
  }
  if (!request.scenario.empty()) app.editor.load(request.scenario);
  const std::string& wanted = app.settings.screen;
  const auto found = std::find(kScreenNames.begin(), kScreenNames.end(), wanted);
  if (found != kScreenNames.end()) app.show(static_cast<Screen>(found - kScreenNames.begin()));
  if (request.range) require_within(app, request);
  if (!request.range) return;
  const double end = app.runs.empty() ? request.range->end_s : std::min(request.range->end_s, length_of(app));
  app.timeline.window = {request.range->begin_s * 1e9, end * 1e9};
}

int view_headless(const ViewRequest& request) {
  Settings settings;
  settings.dark = !request.light;
  settings.screen = request.screen.empty() ? kScreenNames[0] : request.screen;
  App app(settings);
  Headless headless(app, request.width > 0 ? request.width : settings.width,
                    request.height > 0 ? request.height : settings.height,
                    request.scale > 0 ? static_cast<float>(request.scale) : 1.0f);
  prepare(app, request);
  if (!request.script.empty()) headless.play(read_script(request.script));
  // What follows the size of its contents knows it two frames later.
  for (int i = 0; i < 3; ++i) headless.frame();
  if (!request.screenshot.empty()) write_file(request.screenshot, png_of(headless.picture()));
  return 0;
}

int view_in_window(const ViewRequest& request) {
  const std::string remembered = settings_path();
  App app(load_settings(remembered));
  if (!request.screen.empty()) app.settings.screen = request.screen;
  if (request.light) app.settings.dark = false;
  if (request.width > 0) app.settings.width = request.width, app.settings.height = request.height;
  if (request.scale > 0) app.settings.scale = static_cast<float>(request.scale);
  app.theme = theme_of(app.settings.dark);
  run_window(app, {request.script, [&] { prepare(app, request); }});
  if (request.script.empty()) save_settings(app.settings, remembered);
  return 0;
}

}  // namespace

int view(const ViewRequest& request) {
  return request.screenshot.empty() && !request.windowless ? view_in_window(request) : view_headless(request);
}

}  // namespace moebius::viz
