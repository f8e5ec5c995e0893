// Low-rank adapters (LoRA, Hu et al. 2021): the weights of a model are frozen, and beside a matrix W [out,
// in] stand A [rank, in] and B [out, rank], which alone are trained: y = x W' + (x A') B'. A factor on the
// second term (alpha / rank) is a number of the epilogue that writes it: it changes no op, and is 1 here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"
#include "workloads/schedule/op.h"

namespace moebius {

enum class AdapterTarget : std::uint8_t {
  kQkv,  // maps of attention's input, fused or latent
  kAttentionOut,
  kMlpUp,  // of dense MLPs and shared experts
  kMlpDown,
  kExpertUp,  // each routed expert has adapters of its own
  kExpertDown,
};

struct Adapters {
  int rank = 0;  // 0: there are none, all weights are trained
  std::vector<AdapterTarget> targets = {};
  bool any() const { return rank > 0; }
  bool beside(Role matrix) const;
  bool beside_experts() const { return beside(Role::kExpertGateUp) || beside(Role::kExpertDown); }
};

// Whether adapters stand beside a matrix of the layer.
bool has_adapters(const Model& model, int layer, const Adapters& adapters);

// Parameters of a model's adapters, and those that a token is multiplied by.
struct AdapterCount {
  double all = 0, of_token = 0;
};
AdapterCount count_adapters(const Model& model, const Adapters& adapters);

// One line; empty where all weights are trained.
std::string describe_adapters(const Model& model, const Adapters& adapters);

}  // namespace moebius
