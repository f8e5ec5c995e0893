// Rules of how servers of measured rows were started, in the order in which they are applied. The embedded
// ones, with the source of each, are server_starts.json.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "hw/document.h"
#include "workloads/validation/servers/server_row.h"

namespace moebius {

using Version = std::array<int, 3>;
// "0.19.0", "1.2.0rc6.post2" (1.2.0), "0.14" (0.14.0); nothing for other texts.
std::optional<Version> version_of(const std::string& text);

struct VersionSpan {
  std::string is;                       // to the letter; empty: any
  std::optional<Version> from, before;  // of a version that can be read
  std::optional<Version> not_before;    // of one that can be read; others are taken to be new enough
  bool has(const std::string& version) const;
};

struct CountSpan {
  int least = 0, most = 1 << 30;
  bool has(int count) const { return least <= count && count <= most; }
};

// What is empty does not matter. Names are beginnings: "deepseek-r1" is deepseek-r1-0528, too.
struct ServerCondition {
  std::optional<bool> inferencemax;
  std::string mode;
  std::vector<std::string> backends, systems, models;  // models by id of the catalog
  std::vector<std::string> formats, other_formats, other_precisions;
  VersionSpan version;
  std::string measured_from, measured_to;  // days, which a row without one does not meet
  std::vector<int> tp;
  CountSpan users, input, output, replicas;
  bool met(const ServerRow& row, const std::string& model, int replicas) const;
};

// Tokens of an iteration: so many, and prompts and batches, at a multiple, not fewer than `least`. `shared`:
// of all replicas of a worker that take prompts in; otherwise of each.
struct TokenBudget {
  int tokens = 0, inputs = 0, batches = 0, multiple = 1, least = 0;
  bool shared = false;
  int of(int input, int batch, int replicas = 1) const;
};

// Of a rank that decodes: most that leave so many users for each slot, a power of two below 64 and a multiple
// of 64 from there on; at least one.
int slots_of(double users_a_slot, int users, int ranks);

struct ServerRule {
  ServerCondition when;
  std::optional<TokenBudget> token_budget;
  int max_batch = 0;
  double users_a_slot = 0;  // above zero: max_batch is slots_of()
  int users_without = 0;    // above zero: max_batch leaves so many users without a slot
  double memory_share = 0;  // of a device, for weights and cache; 0: as the framework reckons it
  bool fp8_cache = false, generated_experts = false;
  bool deep_gemm = false;             // dense products of FP8 by blocks, on Blackwell under SGLang
  bool fused_shared_experts = false;  // where ranks cut each expert
  bool whole_experts = false;         // on as many ranks as attention has, whose degree was not recorded
  std::optional<bool> fused_reduction = {};
  bool quantised_output = false;
  std::optional<Value> scheduler, speculative;  // objects
};

// input_error for what is not of that form.
std::vector<ServerRule> read_server_rules(const Document& document);
const std::vector<ServerRule>& shipped_server_rules();

// Rows of InferenceMAX (its dumps are named by a date, or as a gap analysis; without dumps, by lengths), and
// others.
bool is_inferencemax(const ServerRow& row);

}  // namespace moebius
