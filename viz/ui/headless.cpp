#include "viz/ui/headless.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "viz/picture/rasterise.h"

namespace moebius::viz {

void set_up_imgui(App& app, float scale) {
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  ImFontConfig config;
  // The built-in font is a bitmap of 13 pixels: whole multiples stay sharp.
  config.SizePixels = 13 * std::max(std::round(scale), 1.0f);
  config.OversampleH = config.OversampleV = 1;
  config.PixelSnapH = true;
  io.Fonts->Clear();
  io.Fonts->Flags |= ImFontAtlasFlags_NoBakedLines | ImFontAtlasFlags_NoMouseCursors;
  io.Fonts->AddFontDefault(&config);
  io.FontGlobalScale = scale / std::max(std::round(scale), 1.0f);
  app.scale = scale;
  apply(app.theme, scale);
}

Headless::Headless(App& app, int width, int height, float scale) : app_(app) {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  for (int key = 0; key < ImGuiKey_COUNT; ++key) io.KeyMap[key] = key;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  io.DisplaySize = {static_cast<float>(width), static_cast<float>(height)};
  io.DeltaTime = 1.0f / 60;
  io.ConfigInputTextCursorBlink = false;
  set_up_imgui(app, scale);
  unsigned char* texels = nullptr;
  int texture_width = 0, texture_height = 0;
  io.Fonts->GetTexDataAsAlpha8(&texels, &texture_width, &texture_height);
  io.Fonts->SetTexID(texels);
}

Headless::~Headless() {
  ImGui::DestroyContext();
}

void Headless::frame() {
  ImGui::NewFrame();
  draw_frame(app_);
  ImGui::Render();
}

Picture Headless::picture() const {
  return picture_of_draw_data(app_);
}

Picture picture_of_draw_data(const App& app) {
  static_assert(sizeof(ImDrawIdx) == sizeof(std::uint16_t));
  unsigned char* texels = nullptr;
  Texture texture;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&texels, &texture.width, &texture.height);
  texture.texels = texels;
  const ImDrawData* data = ImGui::GetDrawData();
  Picture picture(static_cast<int>(data->DisplaySize.x), static_cast<int>(data->DisplaySize.y),
                  app.theme.background);
  std::vector<Vertex> vertices;
  for (int i = 0; i < data->CmdListsCount; ++i) {
    const ImDrawList& list = *data->CmdLists[i];
    vertices.clear();
    for (const ImDrawVert& v : list.VtxBuffer) vertices.push_back({v.pos.x, v.pos.y, v.uv.x, v.uv.y, v.col});
    for (const ImDrawCmd& command : list.CmdBuffer) {
      const Clip clip{static_cast<int>(command.ClipRect.x), static_cast<int>(command.ClipRect.y),
                      static_cast<int>(command.ClipRect.z), static_cast<int>(command.ClipRect.w)};
      rasterise(std::span(vertices).subspan(command.VtxOffset),
                std::span(list.IdxBuffer.Data + command.IdxOffset, command.ElemCount), texture, clip,
                picture);
    }
  }
  return picture;
}

void Headless::play(const Script& script) {
  ScriptPlayer player(script);
  while (player.step(app_, [this] { return picture(); })) frame();
}

}  // namespace moebius::viz
