// A profile: kernels of one chip as they were measured, in tables on grids with named axes. Written by
// `moebius calibrate`, read here; hw/profiles/README.md describes the file. Untrusted: sizes, names and
// values are checked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/accelerator.h"
#include "hw/device_figures.h"
#include "hw/document.h"

namespace moebius {

class Catalog;

// The numbers of an op that a table is laid out by. What each means for an op kind, workloads/cost/table.h
// says.
enum class ProfileKey : std::uint8_t {
  kM,
  kN,
  kK,
  kRows,
  kGroups,
  kHeads,
  kKvHeads,
  kHeadDim,
  kVDim,
  kQueries,
  kKv,
  kWindow
};
std::string_view to_string(ProfileKey key);  // "m", "kv_heads", ...

struct ProfileAxis {
  ProfileKey key = ProfileKey::kM;
  std::vector<double> points;  // ascending, positive
};

struct ProfileRange {  // the table speaks only of ops with low <= key <= high
  ProfileKey key = ProfileKey::kM;
  double low = 0, high = 0;
};

struct ProfileSource {
  std::string key;   // "DEEPGEMM"
  std::string text;  // who measured what, where it is published
  std::string licence;
  std::string date;  // of the measurement or its publication
};

struct HeldOutPart {  // of the rows that have something in common
  std::string name;   // "balanced"
  int rows = 0;
  double median = 0, p90 = 0;
};

// Relative errors of the table on measured rows that were kept out of it.
struct HeldOut {
  int rows = 0;  // 0: there were too few to keep any out
  double mean = 0, worst = 0;
  double median = 0, p90 = 0;
  double bias = 0;                      // the median with its sign: below zero the table is faster
  std::vector<double> quantiles = {};   // evenly spaced, of ln(told / measured); empty: not kept
  std::vector<HeldOutPart> parts = {};  // may be empty
};

struct RejectedRows {
  int rows = 0;
  std::string reason;
};

// One kernel family: for every site (a scattered point, such as the n and k of a weight matrix) a grid over
// the axes.
struct ProfileTable {
  std::string name;                // "gemm fp8, DeepGEMM February 2025"
  std::vector<std::string> kinds;  // op kinds that this kernel computes, as to_string(OpKind) names them
  DType dtype = DType::kBf16;      // of the arithmetic
  std::optional<DType> stored;     // of the operand that is kept (weights, cache) where it is not `dtype`
  // Op kinds whose time the kernels contain beside their own: "quantise", they quantise their BF16
  // activations.
  std::vector<std::string> includes;
  std::string stack;        // framework and version: "deepgemm-2025-02-25"
  std::string source;       // key of a ProfileSource
  int cores = 0;            // that the measured kernels held
  bool sustained = false;   // clocks: under continuous load, or in a short burst
  double limited_from = 0;  // microseconds: so long kernels of a burst were at the power limit; 0: none
  bool fitted = false;      // values run between many scattered rows; otherwise each is one measured row
  bool hot = false;         // replays: what fits in L2 was found there
  bool when_named =
      false;  // of software that runs only where it is asked for: counts when its stack is named
  // Of tables that were measured on a device at hand: medians over their rows.
  double spread = 0;       // of the repetitions of a row: half of the distance between the quartiles
  double fit_error = 0;    // relative error of the table at the rows that it is made of
  bool in_sample = false;  // taken from a system run that the project is also tested on
  std::string note;
  std::vector<ProfileRange> where;
  std::vector<ProfileKey> site_keys;  // may be empty: then there is one site
  std::vector<ProfileAxis> axes;      // one to three
  std::vector<std::vector<double>> sites;
  std::vector<float> microseconds;  // [site][axis 0][axis 1]...; NaN where nothing was measured
  HeldOut held_out;
  std::vector<RejectedRows> rejected;

  std::size_t grid_size() const;  // values of one site
};

// What a board draws while a kernel runs: the lesser of its limit and
//   idle + joule_per_byte * (device-memory bytes a second) + joule_per_flop * (FLOP a second).
struct ProfilePower {
  double idle = 0;   // watts of a board whose kernels do next to nothing
  double limit = 0;  // watts; 0: nothing is known
  double joule_per_byte = 0;
  std::array<double, kNumDTypes> joule_per_flop{};  // by type of the arithmetic; 0: not measured
  std::string carried_from;  // another chip of the architecture, whose energies these are; empty: measured
  std::string source;        // key of a ProfileSource
  std::string note;
  HeldOut held_out;  // errors of watts
  std::vector<RejectedRows> rejected;
};

struct Profile {
  std::string accelerator;  // catalog id
  Accelerator
      reference;  // the chip's figures when the tables were made: tables say how far kernels are from those
  std::vector<ProfileSource> sources;
  std::vector<ProfileTable> tables;  // best first
  ProfilePower power = {};
  std::optional<DeviceFigures> device = {};  // of a profile that was measured on one
  std::string file = {};                     // that it was read from; empty: made here
};

// Throws input_error with file, line and pointer for whatever is not a profile. At most 256 tables, 2^20
// values.
Profile profile_from(const Document& document);

// Text of the profile, one line a site, so that differences can be read; the same for the same profile, to
// the byte.
std::string to_json(const Profile& profile);

// input_error for a profile in DIR/profiles of a chip that the catalog does not know; `beside`: one more name
// that is none of its chips and all right.
void require_known_chips(const Catalog& catalog, const std::string& data_dir, std::string_view beside);

// The embedded profiles and, over them, those in DIR/profiles/*.json, that are of this accelerator (its id or
// one of its aliases), then those of the chips of its architecture that it is based on. A profile in DIR
// comes before the embedded one.
std::vector<Profile> find_profiles(const Accelerator& accelerator, const std::string& data_dir);

}  // namespace moebius
