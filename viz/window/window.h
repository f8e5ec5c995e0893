// The viewer's window: GLFW and OpenGL 3, both opened at run time.
#pragma once

#include <functional>
#include <string>

namespace moebius::viz {

struct App;

struct WindowRequest {
  std::string script;             // input to play, after which the window closes; empty: the user's own
  std::function<void()> prepare;  // called once the window stands
};

// Till it is closed. A missing library or display is a run_error of one sentence.
void run_window(App& app, const WindowRequest& request);

}  // namespace moebius::viz
