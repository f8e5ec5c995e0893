// The viewer's state and its one function: draw a frame. It knows neither window nor file formats; input
// comes through ImGui's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viz/data/colouring.h"
#include "viz/data/neighbours.h"
#include "viz/data/run_data.h"
#include "viz/data/run_difference.h"
#include "viz/ui/scenario_editor.h"
#include "viz/ui/settings.h"
#include "viz/ui/theme.h"
#include "workloads/report/heat_map.h"

namespace moebius::viz {

enum class Screen : std::uint8_t {
  kTimeline,
  kCompare,
  kNetwork,
  kMemory,
  kServing,
  kExperts,
  kTiers,
  kScenario,
};
inline constexpr std::array<const char*, 8> kScreenNames{"timeline", "compare", "network", "memory",
                                                         "serving",  "experts", "tiers",   "scenario"};

struct Selection {
  std::size_t run = 0;
  Place place;
};

struct TimelineState {
  TimeWindow window;
  bool fitted = false;  // the window has been set
  ColourBy colouring = ColourBy::kKind;
  Search search;
  bool stale = true;  // colours do not yet follow colouring and search
  std::array<std::size_t, 2> found{};
  std::array<std::vector<bool>, 2> critical;  // by span, once asked for
  std::string trouble;                        // why something asked for is not shown
  std::optional<Selection> selection;
  bool follow = true;  // the window goes along when the selection moves
  bool counters = true;
  std::string counter;  // the family of counters that is shown; empty: the first
  float scroll = 0;     // pixels
  bool focus_search = false;
  std::array<std::vector<float>, 2> minimap;
  std::vector<std::pair<double, std::uint8_t>> legend;  // of the first run: ns of each category, most first
};

struct NetworkState {
  std::array<std::optional<HeatMap>, 2> maps;
  bool chosen = false;
  std::size_t run = 0, tier = 0, wire = 0, column = 0;
};

// Where things of a frame stand, by name: what scripts click.
struct Rect {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

struct App {
  explicit App(Settings given) : settings(std::move(given)), theme(theme_of(settings.dark)) {}

  // At most two; a third takes the second's place. What goes wrong is shown, and said by open_trouble.
  void open(const std::string& path);
  void show(Screen next) { screen = next; }
  void select(Selection next, bool jump);  // jump: the window moves to it
  void fit();

  std::vector<std::unique_ptr<RunData>> runs;
  std::string open_trouble;
  Screen screen = Screen::kTimeline;
  Settings settings;
  Theme theme;
  float scale = 1;
  bool help = false, opening = false, closing = false;
  std::string open_path;
  TimelineState timeline;
  NetworkState network;
  std::optional<RunDifference> difference;
  ScenarioEditor editor;
  std::map<std::string, Rect> targets;  // of the last frame
};

// Between ImGui::NewFrame() and ImGui::Render(), over the whole display.
void draw_frame(App& app);

// Screens draw where ImGui's cursor stands, as large as what is left.
void timeline_screen(App& app);
void timeline_details(App& app);
void count_legend(App& app);  // when colours have changed
void compare_screen(App& app);
void network_screen(App& app);
void memory_screen(App& app);
void serving_screen(App& app);
void experts_screen(App& app);
void tiers_screen(App& app);
void scenario_screen(App& app);

// Notes where the item stands that was just drawn.
void mark(App& app, const std::string& name);
void mark(App& app, const std::string& name, Rect place);
// A sentence in the middle of a screen that has nothing to show, and what to do about it.
void empty_state(App& app, const std::string& why, const std::string& advice);
// What happened to a report that could not be read; nothing otherwise.
void report_trouble(App& app, const RunData& run);
// "a  NAME" in its colour where two runs are open; nothing for one.
void run_heading(App& app, std::size_t run);

// The state in one line, for scripts: screen, window, search, selection, runs.
std::string state_text(const App& app);

}  // namespace moebius::viz
