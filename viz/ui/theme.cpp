#include "viz/ui/theme.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace moebius::viz {
namespace {

// Hue in sixths of a turn.
Colour from_hsv(float hue, float saturation, float value) {
  const auto part = [&](float shift) {
    const float k = std::fmod(hue + shift, 6.0f);
    const float c = value - value * saturation * std::clamp(std::min(k, 4 - k), 0.0f, 1.0f);
    return static_cast<unsigned>(std::lround(c * 255));
  };
  return colour_of(part(5), part(3), part(1));
}

// Of a name, so that a new kind leaves the colours of the others.
unsigned shade_of(std::string_view name) {
  unsigned hash = 2166136261;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return hash >> 8;
}

// Kinds in families: matrix products blue, experts' violet, attention orange, communication green, memory
// traffic of small kernels grey.
Colour of_kind(OpKind kind, float value) {
  const auto k = static_cast<int>(kind);
  const auto between = [&](OpKind first, OpKind last) {
    return k >= static_cast<int>(first) && k <= static_cast<int>(last);
  };
  const unsigned own = shade_of(to_string(kind));
  const float shade = value - 0.07f * static_cast<float>(own % 3);
  if (between(OpKind::kGemm, OpKind::kGemmWgrad)) return from_hsv(3.55f, 0.62f, shade);
  if (between(OpKind::kGroupedGemm, OpKind::kGroupedGemmWgrad)) return from_hsv(4.5f, 0.5f, shade);
  if (kind == OpKind::kAttention || kind == OpKind::kAttentionGrad || kind == OpKind::kPagedAttention ||
      kind == OpKind::kIndexScores || kind == OpKind::kTopKeys)
    return from_hsv(0.5f, 0.72f, shade);
  if (kind == OpKind::kDispatch || kind == OpKind::kCombine) return from_hsv(2.1f, 0.6f, shade);
  if (kind == OpKind::kSend || kind == OpKind::kRecv) return from_hsv(3.0f, 0.55f, shade);
  if (is_host_copy(kind)) return from_hsv(1.0f, 0.55f, shade);
  if (is_communication(kind)) return from_hsv(0.05f, 0.6f, shade);
  if (kind == OpKind::kAdam) return from_hsv(5.3f, 0.45f, shade);
  return from_hsv(static_cast<float>(own % 7) * 0.9f, 0.16f, shade * 0.9f);
}

constexpr std::array<Colour, 8> kSeries{
    colour_of(78, 140, 220),  colour_of(235, 150, 60), colour_of(95, 180, 105),  colour_of(205, 90, 100),
    colour_of(150, 115, 205), colour_of(150, 110, 90), colour_of(220, 130, 185), colour_of(140, 140, 140)};

Colour mixed(Colour a, Colour b, double share) {
  Colour out = 0xff000000;
  for (int shift = 0; shift < 24; shift += 8) {
    const auto from = static_cast<double>(a >> shift & 0xff), to = static_cast<double>(b >> shift & 0xff);
    out |= static_cast<Colour>(std::lround(from + (to - from) * share)) << shift;
  }
  return out;
}

ImVec4 vec(Colour colour) {
  return ImGui::ColorConvertU32ToFloat4(colour);
}

}  // namespace

Colour Theme::category(ColourBy colouring, std::uint8_t category) const {
  const float value = dark ? 0.86f : 0.80f;
  const bool none = category == kMaxCategories - 1;
  switch (colouring) {
    case ColourBy::kKind:
      return of_kind(static_cast<OpKind>(category), value);
    case ColourBy::kPhase:
    case ColourBy::kOrigin:
      return series(category);
    case ColourBy::kFragment:
      return category < 8 ? series(category)
                          : from_hsv(std::fmod(static_cast<float>(category) * 2.34f, 6.0f), 0.55f, value);
    case ColourBy::kLayer:
      return none ? filtered : from_hsv(static_cast<float>(category) * 5.2f / 62, 0.6f, value);
    case ColourBy::kMicrobatch:
      return none ? filtered : from_hsv(std::fmod(static_cast<float>(category) * 2.34f, 6.0f), 0.55f, value);
    case ColourBy::kExposure:
      return category == 0 ? series(0) : category == 1 ? series(3) : series(2);
  }
  return accent;
}

Colour Theme::series(int index) const {
  const auto at = static_cast<std::size_t>(index);
  const Colour colour = kSeries[at % kSeries.size()];
  const std::size_t shade = at / kSeries.size() % 3;
  return shade == 0 ? colour : mixed(colour, shade == 1 ? select : panel, 0.45);
}

Colour Theme::heat(double share) const {
  const Colour steps[] = {panel, colour_of(60, 90, 180), colour_of(70, 170, 160), colour_of(235, 200, 70),
                          colour_of(220, 60, 50)};
  const double at = std::clamp(share, 0.0, 1.0) * 4;
  const int low = std::min(static_cast<int>(at), 3);
  return mixed(steps[low], steps[low + 1], at - low);
}

Theme theme_of(bool dark) {
  Theme t;
  t.dark = dark;
  t.background = dark ? colour_of(24, 26, 31) : colour_of(250, 250, 248);
  t.panel = dark ? colour_of(34, 37, 44) : colour_of(238, 238, 234);
  t.grid = dark ? colour_of(58, 62, 72) : colour_of(208, 208, 202);
  t.text = dark ? colour_of(226, 228, 232) : colour_of(30, 32, 36);
  t.faint_text = dark ? colour_of(146, 152, 164) : colour_of(104, 108, 116);
  t.accent = dark ? colour_of(100, 160, 240) : colour_of(30, 95, 190);
  t.warning = dark ? colour_of(240, 150, 70) : colour_of(190, 85, 10);
  t.run_a = colour_of(78, 140, 220);
  t.run_b = colour_of(235, 150, 60);
  t.filtered = dark ? colour_of(62, 66, 76) : colour_of(212, 212, 206);
  t.select = dark ? colour_of(255, 255, 255) : colour_of(0, 0, 0);
  return t;
}

void apply(const Theme& theme, float scale) {
  ImGuiStyle style;
  theme.dark ? ImGui::StyleColorsDark(&style) : ImGui::StyleColorsLight(&style);
  style.WindowRounding = style.FrameRounding = style.TabRounding = style.ScrollbarRounding = 0;
  style.WindowBorderSize = 0;
  style.AntiAliasedLines = style.AntiAliasedLinesUseTex = style.AntiAliasedFill = false;
  style.Colors[ImGuiCol_WindowBg] = vec(theme.background);
  style.Colors[ImGuiCol_ChildBg] = vec(theme.background);
  style.Colors[ImGuiCol_PopupBg] = vec(theme.panel);
  style.Colors[ImGuiCol_Text] = vec(theme.text);
  style.Colors[ImGuiCol_TextDisabled] = vec(theme.faint_text);
  style.Colors[ImGuiCol_Separator] = vec(theme.grid);
  style.Colors[ImGuiCol_TableBorderLight] = vec(theme.grid);
  style.Colors[ImGuiCol_TableBorderStrong] = vec(theme.grid);
  if (!theme.dark) style.Colors[ImGuiCol_FrameBg] = vec(theme.panel);
  style.ScaleAllSizes(scale);
  ImGui::GetStyle() = style;
}

}  // namespace moebius::viz
