// An architecture: what a transformer computes, independent of hardware and of parallelism. Read from a Hugging Face
// config.json (models/hf_config.h) or from the catalog.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/document.h"
#include "hw/reader.h"
#include "hw/units.h"

namespace moebius {

enum class AttentionKind : std::uint8_t { kMha, kGqa, kMla };
enum class GateScore : std::uint8_t { kSoftmax, kSigmoid };

struct Mla {              // DeepSeek-V2, section 2.1
  int q_rank = 0;         // 0: queries are projected directly
  int kv_rank = 0;
  int nope_dim = 0;       // per head
  int rope_dim = 0;
  int v_dim = 0;
};

struct Experts {          // of the mixture-of-experts layers
  int routed = 0;         // 0: a dense model
  int active = 0;         // top-k
  int shared = 0;         // number of shared experts
  int width = 0;          // intermediate size of one routed expert
  int shared_width = 0;   // intermediate size of all shared experts together
  int groups = 1;         // group-limited routing: the experts stand in `groups` groups ...
  int active_groups = 1;  // ... of which a token may use so many
  GateScore score = GateScore::kSoftmax;
  double scale = 1;       // routed scaling factor
};

struct Model {
  std::string id;                    // "deepseek-v3"
  std::vector<std::string> aliases;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;                  // of MHA and GQA
  AttentionKind attention = AttentionKind::kMha;
  Mla mla;
  int dense_width = 0;               // intermediate size of dense layers
  bool gated = true;                 // SwiGLU (three matrices); false: GELU (two)
  Experts experts;
  int first_dense = 0;               // leading layers without experts
  int moe_step = 1;                  // after those, every moe_step-th layer has experts
  int vocabulary = 0;
  bool tied_embeddings = false;
  int mtp_layers = 0;                // multi-token-prediction modules after the last layer
  int sliding_window = 0;            // 0: none
  double published_parameters = 0;   // as the publisher rounds them; 0 when unknown
  double published_active = 0;
  std::string unsupported;           // why it cannot run ("linear attention ..."); empty: it can
  std::string source;

  bool is_moe_layer(int layer) const;
  int query_dim() const;             // columns of all query heads together
  int value_dim() const;             // columns of all value heads together
};

// Parameters by what they belong to; MTP modules are counted apart, as publishers do.
struct ParameterCount {
  double embedding = 0, head = 0, attention = 0, dense_mlp = 0, routed_experts = 0, shared_experts = 0, router = 0,
         norms = 0, mtp = 0;
  double total() const;   // without mtp
};
ParameterCount count_parameters(const Model& model);

// Parameters that one token uses: the active experts instead of all; embedding and head count whole.
double active_parameters(const Model& model);

// Forward FLOPs of one token of a training sequence: 2 FLOPs a multiply-add, active experts only, attention causal
// (half of the pairs) or not. The backward pass is twice this. Used for MFU; MTP modules included.
Flops forward_flops_per_token(const Model& model, std::int64_t sequence_length, bool causal);

class ModelCatalog {
 public:
  explicit ModelCatalog(const std::string& data_dir = "");
  // A catalog name, {"hf_config": PATH} (relative to the directory of place.file) or {"base": NAME, ...changes}.
  Model model(const Value& value, const Place& place) const;
  Model model(const std::string& name) const;
  const std::vector<std::string>& ids() const { return ids_; }

 private:
  std::vector<std::string> ids_;
  std::vector<Model> models_;
  std::vector<std::pair<std::string, int>> names_;
};

}  // namespace moebius
