// The viewer as one function: in a window, or without one into a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moebius::viz {

struct TimeRange {
  double begin_s = 0, end_s = 0;
};

struct ViewRequest {
  std::vector<std::string> runs;  // at most two
  std::string scenario;           // for the scenario screen; empty: none yet
  std::string screenshot;         // a PNG file; empty: a window, unless only a script is played without one
  std::string screen;             // empty: the timeline, or in a window what was last shown
  std::optional<TimeRange> range;
  int width = 0, height = 0;  // 0: 1600 x 900, or in a window what was last used
  double scale = 0;           // of text and widgets; 0: 1, or in a window what the display says
  bool light = false;
  std::string script;       // input to play; empty: none
  bool windowless = false;  // a script without a window and without a screenshot
};

// Returns when the window was closed or the picture written. Errors: runs that cannot be opened are
// input_error when a picture is wanted, and shown in the window otherwise; a window that cannot be opened is
// a run_error that says why and what to do instead.
int view(const ViewRequest& request);

}  // namespace moebius::viz
