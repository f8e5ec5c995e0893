// The parts of the timeline screen, and where they stand.
#pragma once

#include "viz/ui/app.h"

namespace moebius::viz {

// Where the parts of the screen stand, in pixels.
struct TimelineFrame {
  struct {
    float x = 0, y = 0;
  } origin;  // of the strip of time, below the ruler
  float width = 0, height = 0;
  float names = 0;  // width of the names, left of origin
  float unit = 0;   // a line of text
};

// The ruler, the rows with what is selected, and what mouse and wheel do there.
void timeline_rows(App& app, const TimelineFrame& frame);

}  // namespace moebius::viz
