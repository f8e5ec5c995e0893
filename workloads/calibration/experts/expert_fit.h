// From times of whole expert layers to a table of their grouped GEMMs: of every row the passes around the
// GEMMs are taken off as the model tells them, what remains is split between up and down as the model splits
// it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hw/profile.h"
#include "workloads/cost/expert_ops.h"

namespace moebius {

// Rows of each expert of the measured rank, for every routing that the time is a mean of.
using Routings = std::shared_ptr<const std::vector<std::vector<std::int32_t>>>;

struct ExpertRow {
  ExpertLayer layer;
  std::int64_t tokens = 0;
  std::string distribution;  // "balanced"
  Routings routings;
  double microseconds = 0;
  bool kept_out = false;  // tells the errors
  bool check = false;     // kept from the trial fit that judges a grid
  bool wide = false;      // of another measurement, never built from: its errors stand apart
};

struct ExpertDraft {
  ProfileTable table;  // says everything but kinds, keys, points, sites, values and errors
  std::vector<ExpertRow> rows;
};

// Two tables, so that neither speaks of products with both sides narrow (the absorbed projections of latent
// attention are grouped GEMMs, too): by the reduction, from 1024 on and below. A table's held-out error is
// that of whole rows.
std::vector<ProfileTable> fit_experts(const ExpertDraft& draft, const Accelerator& reference);

// Kinds, keys and conditions of those tables; `narrow`: the one of short reductions.
ProfileTable expert_table(const ProfileTable& draft, bool narrow);

}  // namespace moebius
