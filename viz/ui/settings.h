// What the viewer remembers from one time to the next: colours, size, the screen last shown, recent runs.
#pragma once

#include <string>
#include <vector>

namespace moebius::viz {

struct Settings {
  bool dark = true;
  int width = 1600, height = 900;
  float scale = 0;  // of text and widgets; 0: as the display says
  std::string screen = "timeline";
  std::vector<std::string> recent;  // runs, latest first; at most ten
};

// $XDG_CONFIG_HOME/moebius/viewer.json, else under ~/.config; empty when neither is known.
std::string settings_path();
// Missing or damaged files give the defaults: what is remembered is a convenience.
Settings load_settings(const std::string& path);
// Quietly gives up where it cannot write.
void save_settings(const Settings& settings, const std::string& path);
void remember(Settings& settings, const std::string& run);

}  // namespace moebius::viz
