// Input played from a file, as if from mouse and keyboard: each line is one action.
//   screen NAME            shows a screen
//   move TARGET | X Y      the mouse goes there; TARGET is a name that the screen gives a place, in quotes
//                          when it has spaces ("screen memory", "search", "worst 1", "rows"), and
//                          TARGET DX DY a place from its corner
//   click [TARGET | X Y]
//   doubleclick [TARGET | X Y]
//   drag DX DY             with the left button, from where the mouse is
//   wheel STEPS            up is positive
//   type TEXT              the rest of the line
//   key NAME               enter, escape, tab, backspace, delete, left, right, up, down, home, end
//   frames N               time passes
//   wait TARGET SECONDS    till it is there; a failure when it does not come
//   shot FILE              the screen as it is, PNG
//   say                    prints the state in one line
// Empty lines and lines that begin with # are nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "viz/picture/picture.h"
#include "viz/ui/app.h"

namespace moebius::viz {

enum class ActionKind : std::uint8_t {
  kScreen,
  kMove,
  kDown,
  kUp,
  kMoveBy,
  kWheel,
  kType,
  kKeyDown,
  kKeyUp,
  kFrame,
  kWait,
  kShot,
  kSay,
};

// What happens before one frame.
struct Action {
  ActionKind kind = ActionKind::kFrame;
  int line = 0;
  std::string text;    // target, file, text
  float x = 0, y = 0;  // pixels; seconds; steps; key
};

struct Script {
  std::string file;
  std::vector<Action> actions;
};

// input_error "FILE:LINE: ..." for what is not understood.
Script read_script(const std::string& file);

class ScriptPlayer {
 public:
  explicit ScriptPlayer(Script script) : script_(std::move(script)) {}

  // Sets ImGui's input for the frame to come; false when the script has ended. run_error when a target is
  // missing.
  bool step(App& app, const std::function<Picture()>& picture);

 private:
  void apply(App& app, const Action& action, const std::function<Picture()>& picture);
  [[noreturn]] void fail(const Action& action, const std::string& why) const;
  Rect target(const App& app, const Action& action) const;

  Script script_;
  std::size_t next_ = 0;
  double waited_ = 0;
  float x_ = -1, y_ = -1;  // the mouse stays where it was put
  bool down_ = false;
};

}  // namespace moebius::viz
