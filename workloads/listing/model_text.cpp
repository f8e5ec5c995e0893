#include "workloads/listing/model_text.h"

#include <fmt/format.h>

#include "models/hf_config.h"
#include "workloads/listing/table_text.h"

namespace moebius {
namespace {

std::string attention_text(const Model& model) {
  std::string text = fmt::format("{} query, {} key-value", model.heads, model.kv_heads);
  if (model.attention != AttentionKind::kMla) text += fmt::format(", width {}", model.head_dim);
  return text;
}

std::string_view norm_text(QkNorm norm) {
  return norm == QkNorm::kNone ? "none" : norm == QkNorm::kPerHead ? "of each head" : "of all heads together";
}

std::string_view block_text(ParallelBlock block) {
  return block == ParallelBlock::kNone      ? "one after the other"
         : block == ParallelBlock::kOneNorm ? "side by side, of one norm"
                                            : "side by side, each with its norm";
}

std::string span_text(const Model& model) {
  if (model.sliding_window == 0 && model.attention_chunk == 0) return "all tokens";
  std::string text = model.sliding_window > 0 ? fmt::format("the last {} tokens", model.sliding_window)
                                              : fmt::format("its block of {} tokens", model.attention_chunk);
  if (model.full_attention_every > 0)
    text += fmt::format(", in every layer but each {}th", model.full_attention_every);
  return text;
}

// Of some publishers, one of both or neither.
std::string published_text(const Published& published) {
  if (published.parameters == 0) return "-";
  const std::string active =
      published.active > 0 ? fmt::format(", {} active", billions(published.active)) : "";
  return billions(published.parameters) + active;
}

}  // namespace

std::string billions(double parameters) {
  return fmt::format("{:.2f} B", parameters * 1e-9);
}

std::string model_text(const Model& model) {
  std::string text = heading(model.id, model.aliases, "model");
  if (!model.unsupported.empty())
    return text + "cannot run: " + model.unsupported + "\nsource: " + model.source + "\n";
  const ParameterCount count = count_parameters(model);
  const TextTable table{
      {"layers",
       fmt::format("{} ({} dense first), {} MTP", model.layers, model.first_dense, model.mtp_layers)},
      {"hidden", std::to_string(model.hidden)},
      {"heads", attention_text(model)},
      {"attention and MLP", std::string(block_text(model.parallel_block))},
      {"norm of queries and keys", std::string(norm_text(model.qk_norm))},
      {"a token attends to", span_text(model)},
      {"experts", fmt::format("{} routed, {} active, {} shared{}, width {}", model.experts.routed,
                              model.experts.active, model.experts.shared,
                              model.experts.shared_gate ? " with a gate" : "", model.experts.width)},
      {"vocabulary", std::to_string(model.vocabulary)},
      {"parameters", billions(count.total())},
      {"  embedding and head", billions(count.embedding + count.head)},
      {"  attention", billions(count.attention)},
      {"  dense MLPs", billions(count.dense_mlp)},
      {"  experts, router", billions(count.routed_experts + count.shared_experts + count.router)},
      {"  MTP, beside the total", billions(count.mtp)},
      {"active parameters", billions(active_parameters(model))},
      {"published", published_text(model.published)},
      {"source", fmt::format("{} ({})", model.source, model.status)}};
  return text + aligned(table);
}

std::string imported_text(const Model& model) {
  return is_imported(model) ? "\n" + model_text(model) : "";
}

}  // namespace moebius
