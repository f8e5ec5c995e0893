#include "models/hf_consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

namespace moebius {
namespace {

// A field as inconsistency() names it, and the keys that families read it from, the usual one first.
struct FieldKeys {
  std::string_view field;
  std::array<std::string_view, 9> keys;
};

constexpr FieldKeys kFields[] = {
    {"heads", {"num_attention_heads", "n_heads", "n_head"}},
    {"kv_heads", {"num_key_value_heads", "kv_n_heads", "num_kv_heads", "multi_query_group_num"}},
    {"head_dim", {"head_dim", "attention_head_dim", "kv_channels"}},
    {"rotary_dim", {"partial_rotary_factor", "rotary_dim", "rotary_pct"}},
    {"sliding_window", {"sliding_window"}},
    {"attention_chunk", {"attention_chunk_size"}},
    {"full_attention_every", {"full_attention_interval", "layer_types", "no_rope_layer_interval"}},
    {"kv_share", {"cla_share_factor"}},
    {"mla/q_rank", {"q_lora_rank"}},
    {"mla/kv_rank", {"kv_lora_rank"}},
    {"mla/nope_dim", {"qk_nope_head_dim"}},
    {"mla/v_dim", {"v_head_dim"}},
    {"indexer", {"index_topk"}},
    {"indexer/head_dim", {"index_head_dim"}},
    {"delta", {"linear_num_key_heads"}},
    {"delta/key_heads", {"linear_num_key_heads"}},
    {"delta/value_heads", {"linear_num_value_heads"}},
    {"experts/active",
     {"num_experts_per_tok", "experts_per_token", "moe_k", "moe_topk", "moe_top_k", "num_experts_per_token"}},
    {"experts/width", {"moe_intermediate_size", "intermediate_size", "ffn_hidden_size"}},
    {"experts/groups", {"n_group"}},
    {"experts/active_groups", {"topk_group"}},
    {"experts/shared_width",
     {"shared_expert_intermediate_size", "n_shared_experts", "num_shared_experts", "moe_num_shared_experts",
      "num_shared_expert", "shared_intermediate_size"}},
    {"first_dense",
     {"first_k_dense_replace", "mlp_only_layers", "moe_layer_start_index", "moe_layer_interval",
      "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_num_skipped", "moe_layer_frequency",
      "expert_layer_offset"}},
    {"dense_width",
     {"intermediate_size", "intermediate_size_mlp", "n_inner", "ffn_hidden_size",
      "shared_intermediate_size"}},
};

const FieldKeys* find_field(std::string_view field) {
  const auto found = std::find_if(std::begin(kFields), std::end(kFields),
                                  [&](const FieldKeys& row) { return row.field == field; });
  return found == std::end(kFields) ? nullptr : &*found;
}

// The first of the field's keys that was read, or the usual one.
std::string_view key_of(const FieldKeys& field, const HfKeys& keys) {
  const auto read = std::find_if(field.keys.begin(), field.keys.end(), [&](std::string_view key) {
    return !key.empty() && keys.read_at(key) != nullptr;
  });
  return read == field.keys.end() ? field.keys.front() : *read;
}

// The field that a word of a sentence about `at` means. Words of plain English mean none.
const FieldKeys* field_named(const std::string& word, const std::string& at) {
  if (word != "heads" && word.find('_') == std::string::npos) return nullptr;
  const std::string beside = at.substr(0, at.rfind('/') == std::string::npos ? 0 : at.rfind('/') + 1);
  const FieldKeys* inner = find_field(beside + word);
  return inner != nullptr ? inner : find_field(word == "q_rank" ? "mla/q_rank" : std::string_view(word));
}

// The sentence in the file's words, and which of them and of the key at fault the file does not have.
std::string sentence_of(const Inconsistency& found, std::string_view at_fault, const HfKeys& keys) {
  std::string text, absent;
  const auto note = [&](std::string_view key) {
    const std::string told = fmt::format("; the file has no {}", key);
    if (keys.read_at(key) == nullptr && absent.find(told) == std::string::npos) absent += told;
  };
  const auto is_word = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (auto at = found.sentence.begin(); at != found.sentence.end();) {
    const auto end = std::find_if_not(at, found.sentence.end(), is_word);
    const std::string word(at, end);
    const FieldKeys* field = field_named(word, found.key);
    const std::string_view key = field == nullptr ? word : key_of(*field, keys);
    text += key;
    if (field != nullptr) note(key);
    at = end;
    while (at != found.sentence.end() && !is_word(*at)) text += *at++;
  }
  note(at_fault);
  return text + absent;
}

}  // namespace

void require_consistent(const Model& model, const HfKeys& keys) {
  const std::optional<Inconsistency> found = inconsistency(model);
  if (!found) return;
  const FieldKeys* field = find_field(found->key);
  const std::string_view key = field == nullptr ? std::string_view(found->key) : key_of(*field, keys);
  const Place* read = keys.read_at(key);
  (read == nullptr ? keys.place_of(key) : *read).fail(sentence_of(*found, key, keys));
}

}  // namespace moebius
