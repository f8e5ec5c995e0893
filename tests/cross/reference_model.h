// The forward pass of Hugging Face's Llama, Mixtral and DeepSeek-V3 in plain loops over double precision,
// straight from weights under their published names: what the schedule's fused, cut and reordered parameters
// must amount to. Every token uses all experts, so that no choice is to be made.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "models/constants.h"
#include "models/model.h"
#include "models/weights/stored_type.h"
#include "tests/unit/checkpoint/small_checkpoint.h"

namespace moebius::test {

using Rows = std::vector<std::vector<double>>;  // by token

class ReferenceModel {
 public:
  ReferenceModel(const Model& model, const Constants& constants, const Tensors& tensors)
      : model_(model), constants_(constants) {
    for (const auto& [name, tensor] : tensors) weights_[name] = to_floats(tensor.first.type, tensor.second);
  }

  // Outputs by module path, of one sequence; `tokens` goes on behind it by one token a module for multi-token
  // prediction.
  std::map<std::string, Rows> run(const std::vector<int>& tokens) {
    length_ = tokens.size() - static_cast<std::size_t>(model_.mtp_layers);
    Rows x = outputs_["model.embed_tokens"] = embed(tokens, 0);
    for (int layer = 0; layer < model_.layers; ++layer) x = run_layer(x, layer);
    outputs_["model.norm"] = norm(x, "model.norm.weight");
    outputs_["lm_head"] = linear(outputs_["model.norm"], "lm_head.weight");
    for (int i = 0; i < model_.mtp_layers; ++i)
      x = run_mtp_module(x, embed(tokens, static_cast<std::size_t>(i) + 1), model_.layers + i);
    return outputs_;
  }

 private:
  const std::vector<float>& weight(const std::string& name) const { return weights_.at(name); }

  Rows embed(const std::vector<int>& tokens, std::size_t shift) const {
    const std::vector<float>& table = weight("model.embed_tokens.weight");
    Rows x;
    for (std::size_t t = 0; t < length_; ++t) {
      const auto row = table.begin() + std::ptrdiff_t{tokens[t + shift]} * model_.hidden;
      x.emplace_back(row, row + model_.hidden);
    }
    return x;
  }

  Rows norm(Rows x, const std::string& name) const {
    const std::vector<float>& scale = weight(name);
    for (std::vector<double>& row : x) {
      double square = 0;
      for (const double value : row) square += value * value;
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] *= scale[i] / std::sqrt(square / static_cast<double>(row.size()) + constants_.norm_epsilon);
    }
    return x;
  }

  Rows linear(const Rows& x, const std::string& name) const {
    const std::vector<float>& w = weight(name);
    const std::size_t in = x[0].size(), out = w.size() / in;
    Rows y(x.size(), std::vector<double>(out));
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t o = 0; o < out; ++o) {
        for (std::size_t i = 0; i < in; ++i) y[t][o] += w[o * in + i] * x[t][i];
      }
    }
    return with_bias(std::move(y), name);
  }

  // Where the map of that weight has one (modeling_qwen2.py: q_proj, k_proj, v_proj).
  Rows with_bias(Rows y, const std::string& name) const {
    const auto bias = weights_.find(name.substr(0, name.rfind('.')) + ".bias");
    if (bias == weights_.end()) return y;
    for (std::vector<double>& row : y) {
      for (std::size_t i = 0; i < row.size(); ++i) row[i] += bias->second[i];
    }
    return y;
  }

  static Rows sum(Rows a, const Rows& b) {
    for (std::size_t t = 0; t < a.size(); ++t) {
      for (std::size_t i = 0; i < a[t].size(); ++i) a[t][i] += b[t][i];
    }
    return a;
  }

  // Turns `size` columns from `first` on by the token's position: pairs (i, i + size/2) in Llama, (2i, 2i+1)
  // in DeepSeek.
  // Of a frequency that YaRN stretches, the part `across` is that of `factor` times longer texts.
  double frequency(std::size_t pair, std::size_t size) const {
    const Rotary& rotary = constants_.rotary;
    const double i = static_cast<double>(pair),
                 plain = 1 / std::pow(rotary.base, 2 * i / static_cast<double>(size));
    double across = (i - rotary.low) / (rotary.high - rotary.low);
    across = across < 0 ? 0 : across > 1 ? 1 : across;
    return plain / rotary.factor * across + plain * (1 - across);
  }

  void rotate(Rows& x, std::size_t first, std::size_t size, bool neighbours) const {
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t i = 0; i < size / 2; ++i) {
        const double angle = static_cast<double>(t) * frequency(i, size), grown = constants_.rotary.magnitude;
        double& a = x[t][first + (neighbours ? 2 * i : i)];
        double& b = x[t][first + (neighbours ? 2 * i + 1 : i + size / 2)];
        const double left = grown * (a * std::cos(angle) - b * std::sin(angle));
        b = grown * (b * std::cos(angle) + a * std::sin(angle));
        a = left;
      }
    }
  }

  static Rows columns(const Rows& x, std::size_t first, std::size_t count) {
    Rows part;
    for (const std::vector<double>& row : x)
      part.emplace_back(row.begin() + first, row.begin() + first + count);
    return part;
  }

  // Causal attention of one head; its output goes to columns from `first` on.
  void attend(const Rows& q, const Rows& k, const Rows& v, Rows& out) const {
    for (std::size_t t = 0; t < q.size(); ++t) {
      std::vector<double> scores(t + 1);
      double total = 0;
      for (std::size_t s = 0; s <= t; ++s) {
        for (std::size_t i = 0; i < q[t].size(); ++i) scores[s] += q[t][i] * k[s][i];
        scores[s] =
            std::exp(scores[s] * constants_.score_scale / std::sqrt(static_cast<double>(q[t].size())));
        total += scores[s];
      }
      for (std::size_t i = 0; i < v[0].size(); ++i) {
        double value = 0;
        for (std::size_t s = 0; s <= t; ++s) value += scores[s] / total * v[s][i];
        out[t].push_back(value);
      }
    }
  }

  void norm_heads(Rows& x, std::size_t size, const std::string& name) const {
    for (std::size_t first = 0; first < x[0].size(); first += size) {
      const Rows head = norm(columns(x, first, size), name);
      for (std::size_t t = 0; t < x.size(); ++t)
        std::copy(head[t].begin(), head[t].end(), x[t].begin() + first);
    }
  }

  Rows grouped_attention(const Rows& x, int layer, const std::string& at) const {
    const auto d = static_cast<std::size_t>(model_.head_dim);
    Rows q = linear(x, at + "q_proj.weight"), k = linear(x, at + "k_proj.weight"),
         v = linear(x, at + "v_proj.weight");
    if (model_.qk_norm != QkNorm::kNone) {
      const bool heads = model_.qk_norm == QkNorm::kPerHead;
      norm_heads(q, heads ? d : q[0].size(), at + "q_norm.weight");
      norm_heads(k, heads ? d : k[0].size(), at + "k_norm.weight");
    }
    const std::size_t turning = model_.rotary_dim > 0 ? model_.rotary_dim : d;
    const bool turns = model_.rotates(layer);
    for (int h = 0; turns && h < model_.heads; ++h) rotate(q, h * d, turning, false);
    for (int h = 0; turns && h < model_.kv_heads; ++h) rotate(k, h * d, turning, false);
    Rows out(x.size());
    for (int h = 0; h < model_.heads; ++h) {
      const std::size_t kv = static_cast<std::size_t>(h * model_.kv_heads / model_.heads);
      attend(columns(q, h * d, d), columns(k, kv * d, d), columns(v, kv * d, d), out);
    }
    return linear(out, at + "o_proj.weight");
  }

  Rows latent_attention(const Rows& x, const std::string& at) const {
    const std::size_t nope = model_.mla.nope_dim, rope = model_.mla.rope_dim, width = model_.mla.v_dim,
                      rank = model_.mla.kv_rank;
    Rows q =
        linear(norm(linear(x, at + "q_a_proj.weight"), at + "q_a_layernorm.weight"), at + "q_b_proj.weight");
    const Rows down = linear(x, at + "kv_a_proj_with_mqa.weight");
    const Rows up =
        linear(norm(columns(down, 0, rank), at + "kv_a_layernorm.weight"), at + "kv_b_proj.weight");
    Rows shared = columns(down, rank, rope);
    rotate(shared, 0, rope, true);
    Rows out(x.size());
    for (int h = 0; h < model_.heads; ++h) {
      rotate(q, h * (nope + rope) + nope, rope, true);
      Rows k = columns(up, h * (nope + width), nope);
      for (std::size_t t = 0; t < k.size(); ++t) k[t].insert(k[t].end(), shared[t].begin(), shared[t].end());
      attend(columns(q, h * (nope + rope), nope + rope), k, columns(up, h * (nope + width) + nope, width),
             out);
    }
    return linear(out, at + "o_proj.weight");
  }

  Rows mlp(const Rows& x, const std::string& gate, const std::string& up, const std::string& down) const {
    Rows g = linear(x, gate);
    const Rows u = linear(x, up);
    for (std::size_t t = 0; t < g.size(); ++t) {
      for (std::size_t i = 0; i < g[t].size(); ++i) g[t][i] *= u[t][i] / (1 + std::exp(-g[t][i]));
    }
    return linear(g, down);
  }

  Rows named_mlp(const Rows& x, const std::string& at) const {
    return mlp(x, at + "gate_proj.weight", at + "up_proj.weight", at + "down_proj.weight");
  }

  // With a gate where there is one (modeling_qwen2_moe.py).
  Rows shared_experts(const Rows& x, const std::string& moe) const {
    if (weights_.count(moe + "shared_expert_gate.weight") == 0) return named_mlp(x, moe + "shared_experts.");
    Rows y = named_mlp(x, moe + "shared_expert.");
    const Rows gates = linear(x, moe + "shared_expert_gate.weight");
    for (std::size_t t = 0; t < y.size(); ++t) {
      for (double& value : y[t]) value /= 1 + std::exp(-gates[t][0]);
    }
    return y;
  }

  Rows experts(const Rows& x, const std::string& at) const {
    const bool mixtral = weights_.count(at + "block_sparse_moe.gate.weight") > 0;
    const std::string moe = at + (mixtral ? "block_sparse_moe." : "mlp.");
    Rows scores = linear(x, moe + "gate.weight");
    for (std::vector<double>& row : scores) {
      double total = 0;
      for (double& s : row)
        total += s = model_.experts.score == GateScore::kSigmoid ? 1 / (1 + std::exp(-s)) : std::exp(s);
      for (double& s : row) s *= model_.experts.scale / total;
    }
    Rows result = model_.experts.shared_width > 0 ? shared_experts(x, moe)
                                                  : Rows(x.size(), std::vector<double>(x[0].size()));
    for (int e = 0; e < model_.experts.routed; ++e) {
      const std::string expert = moe + "experts." + std::to_string(e) + ".";
      Rows y = mixtral ? mlp(x, expert + "w1.weight", expert + "w3.weight", expert + "w2.weight")
                       : named_mlp(x, expert);
      for (std::size_t t = 0; t < y.size(); ++t) {
        for (double& value : y[t]) value *= scores[t][e];
      }
      result = sum(result, y);
    }
    return result;
  }

  Rows run_layer(const Rows& x, int layer) {
    const std::string name = "model.layers." + std::to_string(layer), at = name + ".";
    const Rows normed = norm(x, at + "input_layernorm.weight");
    const Rows attention = model_.attention == AttentionKind::kMla
                               ? latent_attention(normed, at + "self_attn.")
                               : grouped_attention(normed, layer, at + "self_attn.");
    outputs_[name + ".self_attn"] = attention;
    const Rows middle = sum(x, attention);
    // modeling_cohere.py and modeling_gpt_neox.py: the MLP reads what attention does, or its norm does.
    const Rows inner = model_.parallel_block == ParallelBlock::kOneNorm
                           ? normed
                           : norm(model_.is_parallel() ? x : middle, at + "post_attention_layernorm.weight");
    outputs_[name + ".mlp"] = model_.is_moe_layer(layer) ? experts(inner, at) : named_mlp(inner, at + "mlp.");
    return outputs_[name] = sum(middle, outputs_[name + ".mlp"]);
  }

  // eh_proj takes the embedding first (vLLM, deepseek_mtp.py).
  Rows run_mtp_module(const Rows& x, const Rows& ahead, int layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    Rows both = norm(ahead, at + "enorm.weight");
    const Rows hidden = norm(x, at + "hnorm.weight");
    for (std::size_t t = 0; t < both.size(); ++t)
      both[t].insert(both[t].end(), hidden[t].begin(), hidden[t].end());
    const Rows y = run_layer(linear(both, at + "eh_proj.weight"), layer);
    outputs_[at + "shared_head.norm"] = norm(y, at + "shared_head.norm.weight");
    outputs_[at + "shared_head.head"] = linear(outputs_[at + "shared_head.norm"], "lm_head.weight");
    return y;
  }

  const Model& model_;
  const Constants constants_;
  std::map<std::string, std::vector<float>> weights_;
  std::map<std::string, Rows> outputs_;
  std::size_t length_ = 0;
};

}  // namespace moebius::test
