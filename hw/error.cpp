#include "hw/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "hw/json_text.h"

namespace moebius {

namespace {

constexpr double kTooFar = 1e9;
constexpr std::size_t kLongestName = 64;  // what is longer is no name; keys of untrusted files may be

// Lower case, and every separator the same: "H800_SXM" and "h800-sxm" are the same word to the person who
// typed it.
std::string folded(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_' || c == ' ' || c == '.') c = '-';
  }
  return result;
}

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// How far `name` is from `candidate` (both folded), in typing errors. A name that was left unfinished at a
// word's end
// ("h800" for "h800-sxm") is nearer than one wrong letter ("h200"); any other containment is a bit farther
// than that.
double distance(std::string_view name, std::string_view candidate) {
  if (std::max(name.size(), candidate.size()) > kLongestName) return kTooFar;
  if (name == candidate) return 0;
  if (name.size() >= 2 && candidate.starts_with(name) && candidate[name.size()] == '-') return 0.5;
  const std::size_t longer = std::max(name.size(), candidate.size());
  const std::size_t shorter = std::min(name.size(), candidate.size());
  const std::size_t allowed = longer <= 2 ? 0 : std::max<std::size_t>(1, longer / 3);
  const bool contained = shorter >= 3 && (candidate.find(name) != std::string_view::npos ||
                                          name.find(candidate) != std::string_view::npos);
  double result = contained ? 1.5 : kTooFar;
  if (longer - shorter > allowed) return result;
  const std::size_t edits = edit_distance(name, candidate);
  return edits <= allowed ? std::min(result, static_cast<double>(edits)) : result;
}

}  // namespace

Error input_error(const std::string& sentence) {
  return Error(Error::Kind::kInput, sentence);
}

Error run_error(const std::string& sentence) {
  return Error(Error::Kind::kRun, sentence);
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string wanted = folded(name);
  const std::string* nearest = nullptr;
  std::pair<double, std::size_t> best{kTooFar,
                                      0};  // ties: the candidate whose length is closest, then the first
  for (const std::string& candidate : candidates) {
    const double far = distance(wanted, folded(candidate));
    const std::size_t gap = std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
    if (far >= kTooFar || (nearest && std::pair(far, gap) >= best)) continue;
    best = {far, gap};
    nearest = &candidate;
  }
  return nearest ? *nearest : std::string();
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? nearest : " (did you mean " + json_string(nearest) + "?)";
}

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed: %s\n", file, line, condition, values.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace moebius
