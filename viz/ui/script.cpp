#include "viz/ui/script.h"

#include <fmt/format.h>
#include <imgui.h>
#include <time.h>

#include <fstream>
#include <map>
#include <sstream>

#include "hw/error.h"
#include "workloads/report/run_directory.h"

namespace moebius::viz {
namespace {

const std::map<std::string, ImGuiKey> kKeys{
    {"enter", ImGuiKey_Enter},         {"escape", ImGuiKey_Escape}, {"tab", ImGuiKey_Tab},
    {"backspace", ImGuiKey_Backspace}, {"delete", ImGuiKey_Delete}, {"left", ImGuiKey_LeftArrow},
    {"right", ImGuiKey_RightArrow},    {"up", ImGuiKey_UpArrow},    {"down", ImGuiKey_DownArrow},
    {"home", ImGuiKey_Home},           {"end", ImGuiKey_End},       {"all", ImGuiKey_A}};

constexpr int kMostFrames = 100'000;

class Reader {
 public:
  explicit Reader(const std::string& file) { script_.file = file; }

  Script read() {
    std::ifstream stream(script_.file);
    if (!stream)
      throw input_error(fmt::format("{}: expected a file of actions, found nothing", script_.file));
    for (int i = 0; i < 3; ++i) add(ActionKind::kFrame);  // where things stand is known once they were drawn
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      if (line.size() > 4096 || script_.actions.size() > kMostFrames) fail("the script is too long");
      parse(line);
    }
    return std::move(script_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw input_error(fmt::format("{}:{}: {}", script_.file, line_, why));
  }

  void add(ActionKind kind, std::string text = "", float x = 0, float y = 0) {
    script_.actions.push_back({kind, line_, std::move(text), x, y});
  }

  float number(std::istringstream& words) const {
    double value = 0;
    if (!(words >> value) || !(value > -1e6 && value < 1e6)) fail("expected a number");
    return static_cast<float>(value);
  }

  // A name, in quotes when it has spaces.
  std::string name(std::istringstream& words) const {
    std::string word;
    words >> std::ws;
    if (words.peek() != '"') return words >> word ? word : std::string();
    words.get();
    if (!std::getline(words, word, '"')) fail("expected a name");
    return word;
  }

  void place(std::istringstream& words) {
    words >> std::ws;
    const int first = words.peek();
    if (first == std::istringstream::traits_type::eof()) return;
    std::string target;
    if (first == '"' || (std::isdigit(first) == 0 && first != '-' && first != '+')) target = name(words);
    words >> std::ws;
    float x = -1, y = -1;  // the middle of the target
    if (words.peek() != std::istringstream::traits_type::eof()) x = number(words), y = number(words);
    add(ActionKind::kMove, target, x, y);
    add(ActionKind::kFrame);  // what is under the mouse is known a frame later
  }

  void clicks(int count) {
    for (int i = 0; i < count; ++i) add(ActionKind::kDown), add(ActionKind::kUp);
    add(ActionKind::kFrame);
  }

  void parse(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    if (!(words >> verb) || verb[0] == '#') return;
    if (verb == "screen") {
      add(ActionKind::kScreen, name(words));
      add(ActionKind::kFrame);
    } else if (verb == "move") {
      place(words);
    } else if (verb == "click" || verb == "doubleclick") {
      place(words);
      clicks(verb == "click" ? 1 : 2);
    } else if (verb == "drag") {
      const float x = number(words), y = number(words);
      add(ActionKind::kDown);
      for (int i = 0; i < 4; ++i) add(ActionKind::kMoveBy, "", x / 4, y / 4);
      add(ActionKind::kUp);
      add(ActionKind::kFrame);
    } else if (verb == "wheel") {
      const float steps = number(words);
      for (int i = 0; i < static_cast<int>(std::abs(steps)) && i < 1000; ++i)
        add(ActionKind::kWheel, "", steps > 0 ? 1.0f : -1.0f);
      add(ActionKind::kFrame);
    } else if (verb == "type") {
      std::string text;
      std::getline(words >> std::ws, text);
      for (const char c : text) add(ActionKind::kType, std::string(1, c));
      add(ActionKind::kFrame);
    } else if (verb == "key") {
      const std::string key = name(words);
      if (kKeys.count(key) == 0) fail(fmt::format("expected a key such as enter or left, found \"{}\"", key));
      add(ActionKind::kKeyDown, key);
      add(ActionKind::kKeyUp, key);
      add(ActionKind::kFrame);
    } else if (verb == "frames") {
      const int count = static_cast<int>(number(words));
      for (int i = 0; i < count && i < kMostFrames; ++i) add(ActionKind::kFrame);
    } else if (verb == "wait") {
      const std::string target = name(words);
      add(ActionKind::kWait, target, number(words));
    } else if (verb == "shot") {
      add(ActionKind::kShot, name(words));
    } else if (verb == "say") {
      add(ActionKind::kSay);
    } else {
      fail(fmt::format("expected an action, found \"{}\"{}", verb,
                       suggestion(verb, {"screen", "move", "click", "doubleclick", "drag", "wheel", "type",
                                         "key", "frames", "wait", "shot", "say"})));
    }
  }

  Script script_;
  int line_ = 0;
};

}  // namespace

Script read_script(const std::string& file) {
  return Reader(file).read();
}

void ScriptPlayer::fail(const Action& action, const std::string& why) const {
  throw run_error(fmt::format("{}:{}: {}", script_.file, action.line, why));
}

Rect ScriptPlayer::target(const App& app, const Action& action) const {
  const auto found = app.targets.find(action.text);
  if (found != app.targets.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, place] : app.targets) names.push_back(name);
  fail(action, fmt::format("\"{}\" is not on the screen{}", action.text, suggestion(action.text, names)));
}

void ScriptPlayer::apply(App& app, const Action& action, const std::function<Picture()>& picture) {
  ImGuiIO& io = ImGui::GetIO();
  switch (action.kind) {
    case ActionKind::kScreen: {
      const auto found = std::find(kScreenNames.begin(), kScreenNames.end(), action.text);
      if (found == kScreenNames.end()) fail(action, fmt::format("\"{}\" is not a screen", action.text));
      app.show(static_cast<Screen>(found - kScreenNames.begin()));
      return;
    }
    case ActionKind::kMove: {
      if (action.text.empty()) {
        x_ = action.x, y_ = action.y;
        return;
      }
      const Rect place = target(app, action);
      const bool middle = action.x < 0;
      x_ = middle ? (place.x0 + place.x1) / 2 : place.x0 + action.x;
      y_ = middle ? (place.y0 + place.y1) / 2 : place.y0 + action.y;
      return;
    }
    case ActionKind::kMoveBy:
      x_ += action.x, y_ += action.y;
      return;
    case ActionKind::kDown:
    case ActionKind::kUp:
      down_ = action.kind == ActionKind::kDown;
      return;
    case ActionKind::kWheel:
      io.MouseWheel = action.x;
      return;
    case ActionKind::kType:
      io.AddInputCharactersUTF8(action.text.c_str());
      return;
    case ActionKind::kKeyDown:
    case ActionKind::kKeyUp: {
      const ImGuiKey key = kKeys.at(action.text);
      if (key == ImGuiKey_A) io.KeyCtrl = action.kind == ActionKind::kKeyDown;
      io.KeysDown[io.KeyMap[key]] = action.kind == ActionKind::kKeyDown;
      return;
    }
    case ActionKind::kFrame:
    case ActionKind::kWait:
      return;
    case ActionKind::kShot:
      write_file(action.text, png_of(picture()));
      return;
    case ActionKind::kSay:
      fmt::print("{}\n", state_text(app));
      return;
  }
}

bool ScriptPlayer::step(App& app, const std::function<Picture()>& picture) {
  ImGuiIO& io = ImGui::GetIO();
  io.MouseWheel = 0;
  if (next_ == script_.actions.size()) return false;
  const Action& action = script_.actions[next_];
  if (action.kind == ActionKind::kWait && app.targets.count(action.text) == 0) {
    // A child at work: real time passes, a frame every 20 ms.
    if (waited_ > static_cast<double>(action.x))
      fail(action, fmt::format("\"{}\" did not come", action.text));
    const timespec pause{.tv_sec = 0, .tv_nsec = 20'000'000};
    nanosleep(&pause, nullptr);
    waited_ += 0.02;
  } else {
    waited_ = 0;
    ++next_;
    apply(app, action, picture);
  }
  io.MousePos = {x_, y_};
  io.MouseDown[0] = down_;
  return true;
}

}  // namespace moebius::viz
