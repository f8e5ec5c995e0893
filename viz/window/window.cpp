#include "viz/window/window.h"

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/format.h>
#include <imgui.h>

#include <memory>

#include "hw/error.h"
#include "viz/ui/app.h"
#include "viz/ui/headless.h"
#include "viz/window/glfw_library.h"

namespace moebius::viz {
namespace {

Error no_window(const std::string& why) {
  return run_error(
      fmt::format("view: no window can be opened: {}; --screenshot FILE draws a screen without one, "
                  "moebius report RUN --html FILE writes a page",
                  why));
}

std::string glfw_reason() {
  const char* text = nullptr;
  glfwGetError(&text);
  std::string why = text == nullptr ? "GLFW does not say why" : text;
  while (!why.empty() && why.back() == ' ') why.pop_back();
  return why;
}

// GLFW, its window and ImGui's back ends, torn down in reverse.
class Window {
 public:
  explicit Window(App& app) {
    const std::string missing = load_glfw();
    if (!missing.empty()) throw no_window(missing);
    if (glfwInit() == GLFW_FALSE) throw no_window(glfw_reason());
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 2);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    window_ = glfwCreateWindow(app.settings.width, app.settings.height, "moebius", nullptr, nullptr);
    if (window_ == nullptr) {
      const std::string why = glfw_reason();
      glfwTerminate();
      throw no_window(why);
    }
    glfwMakeContextCurrent(window_);
    glfwSwapInterval(1);
    ImGui::CreateContext();
    ImGui_ImplGlfw_InitForOpenGL(window_, true);
    if (!ImGui_ImplOpenGL3_Init("#version 150")) {
      ImGui_ImplGlfw_Shutdown();
      ImGui::DestroyContext();
      glfwTerminate();
      throw no_window("OpenGL 3.2 is not there");
    }
    float scale = app.settings.scale, vertical = 1;
    if (scale <= 0) glfwGetWindowContentScale(window_, &scale, &vertical);
    set_up_imgui(app, scale);
  }
  ~Window() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImGui::DestroyContext();
    glfwDestroyWindow(window_);
    glfwTerminate();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  bool closed() const { return glfwWindowShouldClose(window_) != 0; }

  // Without input the last frame stays: waiting costs nothing.
  void begin(App& app, bool wait) {
    wait ? glfwWaitEventsTimeout(0.25) : glfwPollEvents();
    if (app.settings.scale > 0 && app.settings.scale != app.scale) {
      set_up_imgui(app, app.settings.scale);
      ImGui_ImplOpenGL3_DestroyFontsTexture();
    }
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
  }

  void end(App& app) {
    ImGui::Render();
    glfwGetFramebufferSize(window_, &width_, &height_);
    glfwGetWindowSize(window_, &app.settings.width, &app.settings.height);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glfwSwapBuffers(window_);
  }

 private:
  GLFWwindow* window_ = nullptr;
  int width_ = 0, height_ = 0;
};

// What stands in the window, drawn again in software: scripts compare it with what is drawn without a window.
Picture drawn_again(const App& app) {
  return picture_of_draw_data(app);
}

}  // namespace

void run_window(App& app, const WindowRequest& request) {
  Window window(app);
  request.prepare();
  std::unique_ptr<ScriptPlayer> player;
  if (!request.script.empty()) player = std::make_unique<ScriptPlayer>(read_script(request.script));
  int awake = 8;  // frames to draw at once after something happened
  while (!window.closed() && !app.closing) {
    window.begin(app, player == nullptr && awake <= 0 && !app.editor.child.running());
    if (player != nullptr && !player->step(app, [&] { return drawn_again(app); })) break;
    ImGui::NewFrame();
    draw_frame(app);
    window.end(app);
    const ImGuiIO& io = ImGui::GetIO();
    const bool moved = io.MouseDelta.x != 0 || io.MouseDelta.y != 0 || io.MouseWheel != 0 || io.MouseDown[0];
    awake = moved || !io.InputQueueCharacters.empty() ? 8 : awake - 1;
  }
}

}  // namespace moebius::viz
