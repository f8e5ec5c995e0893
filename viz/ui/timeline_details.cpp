// Beside the timeline: what is selected, said in full, and what the colours mean.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <map>

#include "viz/data/op_names.h"
#include "viz/data/twin.h"
#include "viz/ui/app.h"
#include "viz/ui/chart.h"

namespace moebius::viz {
namespace {

void fact(const std::string& name, const std::string& value) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", name.c_str());
  explain(name);
  ImGui::TableNextColumn();
  ImGui::TextWrapped("%s", value.c_str());
  explain(value.substr(0, value.find(' ')));
}

std::string shape_text(const Shape& s) {
  std::string text;
  const auto add = [&](const char* name, std::int64_t value) {
    if (value != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  add("m", s.m), add("n", s.n), add("k", s.k), add("groups", s.groups), add("heads", s.heads);
  add("kv heads", s.kv_heads), add("head dim", s.head_dim), add("kv", s.kv), add("window", s.window);
  return text;
}

void work(const OpRow& op, double seconds) {
  if (!shape_text(op.shape).empty()) fact("shape", shape_text(op.shape));
  fact("type", std::string(to_string(op.dtype)));
  if (op.flops > 0) fact("work", to_text(Flops{op.flops}));
  if (op.bytes > 0) fact("bytes", bytes_text(op.bytes));
  if (op.payload > 0) fact("payload", fmt::format("{} on {}", payload_text(op), to_string(op.group)));
  if (seconds <= 0) return;
  if (op.flops > 0) fact("achieved", to_text(FlopRate{op.flops / seconds}));
  if (op.bytes > 0) fact("", to_text(ByteRate{op.bytes / seconds}));
}

void times(const Span& span, bool communication) {
  fact("start", fmt::format("{:.6f} ms", static_cast<double>(span.start.ns) * 1e-6));
  fact("length", seconds_text((span.end - span.start).seconds()));
  const Time waiting = span.transfer_start() - span.start;
  if (communication && waiting.ns > 0) fact("for peers", seconds_text(waiting.seconds()));
  if (span.first_end.ns > 0 && span.first_end != span.end)
    fact("members", fmt::format("first done after {}, slowest is member {}",
                                seconds_text((span.first_end - span.start).seconds()), span.slowest));
  std::string source(to_string(span.origin));
  if (span.error > 0) source += fmt::format(", +-{:.0f}% expected", 100 * static_cast<double>(span.error));
  fact("time is", source);
}

void jump_button(App& app, const char* what, const std::string& name, Selection to) {
  ImGui::PushID(what);
  ImGui::TextDisabled("%s", what);
  explain(what);
  if (ImGui::Button(name.c_str())) app.select(to, true);
  mark(app, what);
  ImGui::PopID();
}

void selected(App& app) {
  const Selection chosen = *app.timeline.selection;
  const RunData& run = *app.runs[chosen.run];
  const Span span = run.columns.span(run.lanes.span(chosen.place.slot));
  const OpRow& op = run.columns.op_of(span);
  const SubmissionRow& s = run.columns.submission_of(span);
  run_heading(app, chosen.run);
  ImGui::TextWrapped("%s", run.name_of_op(run.lanes.op_row(chosen.place.slot)).c_str());
  mark(app, "selected");
  ImGui::Separator();
  if (ImGui::BeginTable("facts", 2)) {
    ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, ImGui::GetFontSize() * 6);
    ImGui::TableSetupColumn("");
    times(span, is_communication(op.kind));
    if (!run.of_submissions())
      work(op, (span.end - (is_communication(op.kind) ? span.transfer_start() : span.start)).seconds());
    if (!run.of_submissions()) {
      fact("phase", std::string(to_string(op.phase)));
      fact("lane", std::string(to_string(span.lane)));
    }
    fact("fragment", run.tables().fragments[s.fragment]);
    fact("submission", fmt::format("{}, step {}, microbatch {}", s.sequence, s.step, microbatch_of(s, op)));
    fact("rank class", class_name(run.tables(), span.rank_class));
    ImGui::EndTable();
  }
  const auto name = [&](Place place) {
    return fmt::format("{} ({})", run.name_of_op(run.lanes.op_row(place.slot)),
                       class_name(run.tables(), run.lanes.rows()[place.row].rank_class));
  };
  if (const auto before = waited_for(run, chosen.place)) {
    jump_button(app, "waited for", name(before->place), {chosen.run, before->place});
    ImGui::TextDisabled("%s", std::string(to_string(before->reason)).c_str());
  }
  if (const auto peer = other_side(run, chosen.place))
    jump_button(app, "other side", name(*peer), {chosen.run, *peer});
  if (app.runs.size() == 2) {
    const std::size_t other = 1 - chosen.run;
    const RunData& beside = *app.runs[other];
    Selection there{other, {}};
    const auto twin = twin_of(run.columns, run.lanes.span(chosen.place.slot), beside.columns);
    if (twin && beside.lanes.find(beside.columns, *twin, there.place.row, there.place.slot))
      jump_button(app, other == 0 ? "in run a" : "in run b", name(there.place), there);
  }
}

void legend(App& app) {
  const RunData& run = *app.runs.front();
  const auto& order = app.timeline.legend;
  ImGui::TextDisabled("%s", to_string(app.timeline.colouring));
  double all = 1e-300;
  for (const auto& [ns, category] : order) all += ns;
  std::size_t shown = 0;
  for (const auto& [ns, category] : order) {
    if (++shown > 24) break;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float unit = ImGui::GetFontSize();
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + 2}, {at.x + unit * 0.7f, at.y + unit - 1},
                                              app.theme.category(app.timeline.colouring, category));
    ImGui::Indent(unit);
    const std::string name = category_name(run, app.timeline.colouring, category);
    ImGui::Text("%s  %s", name.c_str(), share_text(ns / all).c_str());
    explain(name);
    ImGui::Unindent(unit);
  }
  if (shown < order.size()) ImGui::TextDisabled("and %d more", static_cast<int>(order.size() - 24));
  ImGui::TextDisabled("of all lanes, without waiting");
}

}  // namespace

void count_legend(App& app) {
  const RunData& run = *app.runs.front();
  const Categories& categories = run.detail.categories();
  std::array<double, kMaxCategories> ns{};
  for (std::size_t slot = 0; slot < categories.size(); ++slot)
    if ((categories[slot] & kFilteredOut) == 0)
      ns[categories[slot]] += static_cast<double>(run.lanes.end(slot) - run.work_start(slot));
  auto& order = app.timeline.legend;
  order.clear();
  for (std::size_t c = 0; c < ns.size(); ++c)
    if (ns[c] > 0) order.emplace_back(ns[c], static_cast<std::uint8_t>(c));
  std::sort(order.rbegin(), order.rend());
}

void timeline_details(App& app) {
  if (app.timeline.selection) {
    selected(app);
    ImGui::Separator();
  } else {
    ImGui::TextDisabled("Click an op to see what it is.");
    ImGui::TextDisabled("? shows the keys.");
    ImGui::Separator();
  }
  legend(app);
}

}  // namespace moebius::viz
