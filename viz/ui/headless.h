// Screens without a display: Dear ImGui's triangles through our own rasteriser. The same pixels on every
// machine.
#pragma once

#include "viz/picture/picture.h"
#include "viz/ui/app.h"
#include "viz/ui/script.h"

namespace moebius::viz {

class Headless {
 public:
  Headless(App& app, int width, int height, float scale);  // one at a time
  ~Headless();
  Headless(const Headless&) = delete;
  Headless& operator=(const Headless&) = delete;

  void frame();             // one sixtieth of a second
  Picture picture() const;  // of the last frame
  // Frames till the script has ended.
  void play(const Script& script);

 private:
  App& app_;
};

// The last frame, drawn in software.
Picture picture_of_draw_data(const App& app);

// What the OpenGL window and this share: fonts for the scale, our style, no files of ImGui's own.
void set_up_imgui(App& app, float scale);

}  // namespace moebius::viz
