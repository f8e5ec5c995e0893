// The scoreboard for people: on a terminal, and in a README.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "workloads/validation/claims/claim_tables.h"

namespace moebius {

namespace {

using Out = std::back_insert_iterator<std::string>;

std::string figure(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "-";
}

std::string ours(const JudgedClaim& judged, std::string_view between) {
  std::string text;
  for (const ClaimRun& run : judged.runs) {
    if (!text.empty()) text += between;
    text += figure(run.ours);
  }
  return text;
}

std::string need_text(const ClaimNeed& need, const ClaimBound& published) {
  const ClaimAssumption& assumption = *need.assumption;
  if (need.number)
    return fmt::format("{} = {:.4g} (now {:.4g}; {})", assumption.says, *need.number, assumption.from,
                       assumption.pointer);
  return fmt::format("{}: even {:.4g} gives {}, published {} ({})", assumption.says, assumption.to,
                     figure(need.at_the_end), published.text(), assumption.pointer);
}

void add_run(Out out, const Claim& claim, std::size_t i, const ClaimRun& run) {
  fmt::format_to(out, "    {:<52} {:>10}", claim.configurations[i].name, figure(run.ours));
  for (std::size_t n = 0; n < claim.notes.size(); ++n)
    fmt::format_to(out, "  {} {}", claim.notes[n].name, figure(run.notes[n]));
  fmt::format_to(out, "{}{}\n", run.failure.empty() ? "" : "  did not run: ", run.failure);
}

void add_claim(Out out, const JudgedClaim& judged) {
  const Claim& claim = *judged.claim;
  fmt::format_to(out, "{:<26} {:<15} {:<26} {:<11} {}\n", claim.id, claim.published.text(), ours(judged, " "),
                 to_string(judged.verdict), claim.says);
  fmt::format_to(out, "    mechanism: {}\n    figure: {}; source: {}\n", claim.mechanism, claim.figure.text(),
                 claim.source);
  for (std::size_t i = 0; i < judged.runs.size(); ++i) add_run(out, claim, i, judged.runs[i]);
  if (judged.verdict != JudgedClaim::Verdict::kPass && !claim.known_miss.empty())
    fmt::format_to(out, "    known miss: {}\n", claim.known_miss);
  for (const ClaimNeed& need : judged.needs)
    fmt::format_to(out, "    would need {}\n", need_text(need, claim.published));
}

std::size_t num_with(const std::vector<JudgedClaim>& claims, JudgedClaim::Verdict verdict) {
  return static_cast<std::size_t>(std::count_if(
      claims.begin(), claims.end(), [&](const JudgedClaim& claim) { return claim.verdict == verdict; }));
}

// A cell may hold no bar.
std::string cell(std::string text) {
  std::replace(text.begin(), text.end(), '|', '/');
  return text;
}

void add_row(Out out, const JudgedClaim& judged) {
  const Claim& claim = *judged.claim;
  const bool passed = judged.verdict == JudgedClaim::Verdict::kPass;
  std::string reason = passed ? "" : claim.known_miss;
  for (const ClaimNeed& need : judged.needs)
    reason += fmt::format("{}would need {}", reason.empty() ? "" : "; ", need_text(need, claim.published));
  fmt::format_to(out, "| {} | {} | {} | {} | {} | {} | {} |\n", claim.id, cell(claim.says),
                 claim.published.text(), ours(judged, ", "), to_string(judged.verdict), cell(claim.mechanism),
                 cell(reason));
}

}  // namespace

std::string to_text(const std::vector<JudgedClaim>& claims) {
  std::string text;
  if (claims.empty()) return text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "{:<26} {:<15} {:<26} {:<11} {}\n", "claim", "published", "ours", "verdict", "says");
  for (const JudgedClaim& claim : claims) add_claim(out, claim);
  using Verdict = JudgedClaim::Verdict;
  fmt::format_to(out, "{} claims: {} pass, {} known misses, {} misses, {} worse than known\n", claims.size(),
                 num_with(claims, Verdict::kPass), num_with(claims, Verdict::kKnownMiss),
                 num_with(claims, Verdict::kMiss), num_with(claims, Verdict::kWorse));
  return text;
}

std::string to_markdown(const std::vector<JudgedClaim>& claims) {
  std::string text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "| claim | says | published | ours | | mechanism | of a miss |\n");
  fmt::format_to(out, "|---|---|---|---|---|---|---|\n");
  for (const JudgedClaim& claim : claims) add_row(out, claim);
  fmt::format_to(out, "\n| claim | configuration | ours | beside it |\n|---|---|---|---|\n");
  for (const JudgedClaim& judged : claims) {
    for (std::size_t i = 0; i < judged.runs.size(); ++i) {
      const ClaimRun& run = judged.runs[i];
      std::string beside = run.failure;
      for (std::size_t n = 0; n < run.notes.size(); ++n)
        beside += fmt::format("{}{} {}", beside.empty() ? "" : ", ", judged.claim->notes[n].name,
                              figure(run.notes[n]));
      fmt::format_to(out, "| {} | {} | {} | {} |\n", judged.claim->id,
                     cell(judged.claim->configurations[i].name), figure(run.ours), cell(beside));
    }
  }
  return text;
}

}  // namespace moebius
