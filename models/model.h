// An architecture: what a transformer computes, independent of hardware and of parallelism. Read from a
// Hugging Face config.json (models/hf_config.h) or from the catalog.
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
// kQkv: the query, key and value maps add a bias; kAll: every linear map does, which is counted as parameters
// but not computed.
enum class Biases : std::uint8_t { kNone, kQkv, kAll };

// RMSNorm of queries and of keys before positions turn them.
enum class QkNorm : std::uint8_t {
  kNone,
  kPerHead,   // of each head by itself, all with the weights of one (Qwen3)
  kPerLayer,  // of a row of all heads together, each column with a weight of its own (OLMoE, MiniMax-M2)
};

// How a layer adds attention and MLP to the stream: one after the other, or both of the same stream,
// x + attention(norm(x)) + mlp(norm(x)) (GPT-J; PaLM, arXiv 2204.02311, section 2).
enum class ParallelBlock : std::uint8_t {
  kNone,
  kOneNorm,   // that both read: GPT-J, PaLM, Falcon 7B, Command R, Phi
  kTwoNorms,  // each has its own: GPT-NeoX, Falcon 40B and 180B
};

struct Mla {       // DeepSeek-V2, section 2.1
  int q_rank = 0;  // 0: queries are projected directly
  int kv_rank = 0;
  int nope_dim = 0;  // per head
  int rope_dim = 0;
  int v_dim = 0;

  bool operator==(const Mla&) const = default;
};

// DeepSeek sparse attention (DeepSeek-V3.2-Exp, section 2.1): beside latent attention stand a few small query
// heads with one key a token, and a query attends to the `top` keys that sum_h w_h relu(q_h . k) is largest
// for.
struct Indexer {
  int heads = 0;     // 0: a query attends to all keys
  int head_dim = 0;  // of which as many columns turn as of the latent's rotary key
  int top = 0;

  bool operator==(const Indexer&) const = default;
};

// Gated delta networks (Yang et al., arXiv 2412.06464) in the place of attention, but for every
// full_attention_every-th layer. What such a layer keeps is of a sequence, not of a token: of each value head
// a matrix [key_dim, value_dim] in FP32, and the last convolution - 1 rows that went into the convolution.
struct DeltaNet {
  int key_heads = 0;  // of queries and keys; 0: all layers attend
  int value_heads = 0;
  int key_dim = 0, value_dim = 0;  // per head
  int convolution = 0;             // its width, in tokens

  bool given() const { return key_heads > 0; }
  int convolved_columns() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
  int value_columns() const { return value_heads * value_dim; }
  bool operator==(const DeltaNet&) const = default;
};

struct Experts {             // of the mixture-of-experts layers
  int routed = 0;            // 0: a dense model
  int active = 0;            // top-k
  int shared = 0;            // number of shared experts
  int width = 0;             // intermediate size of one routed expert
  int shared_width = 0;      // intermediate size of all shared experts together
  bool shared_gate = false;  // what the shared ones give counts times the sigmoid of one number a token
  int always = 0;  // of `active`: shared experts that stand behind the routed ones (shared_among_routed)
  int groups = 1;  // group-limited routing: the experts stand in `groups` groups ...
  int active_groups = 1;  // ... of which a token may use so many
  GateScore score = GateScore::kSoftmax;
  double scale = 1;  // routed scaling factor

  bool operator==(const Experts&) const = default;
};

// Which embedding tables a publisher's count of active parameters holds. The input table is a look-up of one
// row, so some leave it out (DeepSeek, OpenAI), some leave out the output head as well (GLM), others count
// everything (Qwen).
enum class CountedTables : std::uint8_t { kAll, kHead, kNone };

// What has a scale of its own in a checkpoint of 8 bits: which kernels multiply it is a matter of that.
enum class Fp8Scales : std::uint8_t {
  kBlock,   // 128 x 128 weights, and 128 activations of a token
  kTensor,  // a tensor, a column of weights or a token: cuBLAS's and CUTLASS's kernels
};

struct Published {  // as the publisher rounds them; 0 when unknown
  double parameters = 0;
  double active = 0;
  CountedTables active_tables = CountedTables::kAll;

  bool operator==(const Published&) const = default;
};

struct Model {
  std::string id;  // "deepseek-v3"; "deepseek-v3 (changed)" when a scenario changed parts of it
  std::vector<std::string> aliases;
  int layers = 0;
  int first_layer = 0;  // of a stage (stage_of()): the number of its first layer in the whole model
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;  // MLA: equal to heads
  int head_dim = 0;  // of MHA and GQA
  AttentionKind attention = AttentionKind::kMha;
  Mla mla;
  Indexer indexer;
  int dense_width = 0;  // intermediate size of dense layers
  bool gated = true;    // SwiGLU (three matrices); false: GELU (two)
  Experts experts;
  int first_dense = 0;  // leading layers without experts
  int moe_step = 1;     // after those, every moe_step-th layer has experts, the first one of them too
  int vocabulary = 0;
  bool tied_embeddings = false;
  int mtp_layers = 0;            // multi-token-prediction modules after the last layer
  int sliding_window = 0;        // a token sees so many last tokens, itself included; 0: all
  int attention_chunk = 0;       // a token sees only its own block of so many tokens (Llama 4); 0: all
  int full_attention_every = 0;  // n: layers n-1, 2n-1, ... have neither window nor chunk, nor are they delta
                                 // networks; 0: all layers have
  int no_rotary_every = 0;  // n: layers n-1, 2n-1, ... turn neither queries nor keys (NoPE, arXiv 2501.18795:
                            // Command R7B, SmolLM3); 0: all that have rotary positions do
  DeltaNet delta = {};
  int kv_share = 1;  // so many consecutive layers share one set of keys and values
  Biases biases = Biases::kNone;
  QkNorm qk_norm = QkNorm::kNone;
  ParallelBlock parallel_block = ParallelBlock::kNone;
  bool output_gate = false;   // attention times the sigmoid of a gate that the query map gives beside queries
  int rotary_dim = 0;         // columns of each head that positions turn; 0: all of head_dim
  bool layer_norm = false;    // norms with a mean and a bias (GPT); false: RMSNorm
  int learned_positions = 0;  // rows of a learned position table; 0: rotary embedding
  Published published;
  std::optional<Fp8Scales> fp8_scales;  // of the checkpoint in 8 bits that is published; none: not known
  std::string unsupported;              // why it cannot run ("linear attention ..."); empty: it can
  std::string source;                   // where the numbers come from, in words
  std::string status;                   // published | from memory | derived
  std::string note;                     // what of it is left out or told otherwise, in words

  bool operator==(const Model&) const = default;

  bool is_moe_layer(int layer) const;  // from `layers` on, of MTP modules: as the last one
  int num_moe_layers() const;
  bool is_sparse() const { return indexer.heads > 0; }
  bool is_parallel() const { return parallel_block != ParallelBlock::kNone; }
  int window(int layer) const;  // sliding window of the layer, 0: none
  int chunk(int layer) const;   // attention chunk of the layer, 0: none
  // false: its attention turns neither queries nor keys (no_rotary_every; between Llama 4's chunked layers;
  // where positions are learned, which are added to the embedding once)
  bool rotates(int layer) const;
  bool adds_qkv_bias() const;  // to the fused map of queries, keys and values: latent attention has none
  bool trains_qkv_bias() const;  // the same, and where all maps have biases
  bool is_delta_layer(int layer) const;
  int num_attention_layers() const;  // that are not delta networks
  int num_windowed_layers() const;   // that look back to no more than a window or chunk
  int query_dim() const;             // columns of all query heads together
  int value_dim() const;             // columns of all value heads together
  int key_head_dim() const;          // columns of one query or key head, rotary part included
  int value_head_dim() const;
};

struct Inconsistency {
  std::string key;       // "experts/active"
  std::string sentence;  // "active experts 9 are more than routed experts 8"
};
// The first relation between the sizes that does not hold, or nothing.
std::optional<Inconsistency> inconsistency(const Model& model);

// Parameters by what they belong to; MTP modules are counted apart, as publishers do.
struct ParameterCount {
  double embedding = 0, head = 0, attention = 0, dense_mlp = 0, routed_experts = 0, shared_experts = 0,
         router = 0, norms = 0, mtp = 0;
  double total() const;  // without mtp
};
ParameterCount count_parameters(const Model& model);

// Parameters that one token uses: the active experts instead of all; embedding and head as `tables` says,
// both by default.
double active_parameters(const Model& model, CountedTables tables = CountedTables::kAll);

// Forward FLOPs of one token of a training sequence: 2 FLOPs a multiply-add, active experts only, attention
// over the pairs that are seen (causal) or over twice those (not causal: the square, as some publishers
// count). Norms, softmax and activations are not counted. The backward pass is twice this. MTP modules are
// work that is done and belong to it; publishers may leave them out (DeepSeek's own figure does): set
// model.mtp_layers = 0 to compare.
Flops forward_flops_per_token(const Model& model, std::int64_t sequence_length, bool causal);
// Its parts: one layer; and the output head with the MTP modules.
Flops layer_flops_per_token(const Model& model, int layer, std::int64_t sequence_length, bool causal);
Flops head_flops_per_token(const Model& model, std::int64_t sequence_length, bool causal);
// Of all that, the products with weights, MTP modules left out: what lies beyond is between queries and keys.
Flops product_flops_per_token(const Model& model);

// Keys and values that one token leaves in the cache, in elements over all layers; MLA keeps the latent and
// the rotary key, and the key of an indexer.
double kv_elements_per_token(const Model& model);

// What delta networks keep of one sequence, over all layers, whatever its length.
Bytes state_bytes_per_sequence(const Model& model);

// So many of its layers from `first` on, which keep their kinds; without MTP modules.
Model stage_of(const Model& model, int first, int layers);

// The same computation with the shared experts among the routed ones: behind them stand as many that every
// token uses, beside those it chooses among the `routed`. Needs shared experts as wide as routed ones,
// and without a gate.
Model shared_among_routed(const Model& model);

class ModelCatalog {
 public:
  // models/catalog/models.json as embedded and, when `data_dir` is not empty, DIR/models.json over it (the
  // same form; an entry may name a "base"). Parsed once; look-ups only copy a Model.
  explicit ModelCatalog(const std::string& data_dir = "");
  // A catalog name, {"hf_config": PATH} (relative to the directory of place.file) or {"base": NAME,
  // ...changes} in the catalog's vocabulary (models/catalog/README.md). A model that cannot run is returned
  // too, see Model::unsupported.
  Model model(const Value& value, const Place& place) const;
  // By id or alias, in any case; input_error with the nearest name when unknown.
  Model model(const std::string& name) const;
  bool has(const std::string& name) const { return index_of(name) >= 0; }
  const std::vector<std::string>& ids() const { return ids_; }

 private:
  void load(const Document& document);
  void add(const std::string& id, Reader reader, const Reader& sources);
  void name(const std::string& text, int index, const Place& place);
  std::string unknown(const std::string& name) const;
  int index_of(const std::string& name) const;  // -1: unknown

  std::vector<std::string> ids_;
  std::vector<Model> models_;
  std::vector<std::pair<std::string, int>> names_;  // id or alias (lower case) -> model, sorted
};

}  // namespace moebius
