// Where GLFW's headers were not there when this was built.
#include "hw/error.h"
#include "viz/window/window.h"

namespace moebius::viz {

void run_window(App&, const WindowRequest&) {
  throw run_error(
      "view: this binary was built without a window (libglfw3-dev was missing); --screenshot FILE draws a "
      "screen without one, moebius report RUN --html FILE writes a page");
}

}  // namespace moebius::viz
