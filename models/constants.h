// The constants of a model's arithmetic: they change results, not work, so that no schedule carries them.
// They travel with the weights, in config.json.
#pragma once

#include <cstdint>
#include <string>

#include "hw/document.h"

namespace moebius {

// Rotary positions. Pair i of `rotated` columns turns by position times
//   base^(-2i/rotated) * (1 - r + r/factor), r = (i - low) / (high - low) between 0 and 1,
// which is YaRN ("NTK-by-parts", Peng et al. 2023, arXiv:2309.00071, section 3.2): pairs that turn often in
// the trained length keep their frequency, those that do not turn once are stretched by `factor`.
struct Rotary {
  double base = 10000;
  double factor = 1;
  double low = 0, high = 1;
  double magnitude = 1;  // of cosine and sine

  bool operator==(const Rotary&) const = default;
};
double rotary_frequency(const Rotary& rotary, std::int64_t pair, std::int64_t rotated);

struct Constants {
  Rotary rotary;
  double score_scale = 1;        // of attention scores, beside 1/sqrt(head_dim)
  double norm_epsilon = 1e-6;    // added to the mean square by RMSNorm
  std::string unsupported = {};  // why no run computes with them ("rope_type \"llama3\""); empty: it does

  bool operator==(const Constants&) const = default;
};

// Of a Hugging Face configuration (config.json); what it does not say is as above. input_error for values
// that are no numbers or out of range. Scalings other than "linear" and "yarn" are `unsupported`, and so are
// multipliers (Granite), Gemma's embedding and norms, and activations other than SiLU; how much of a head
// turns is the model's (Model::rotary_dim).
Constants constants_from_hf_config(const Document& config);

}  // namespace moebius
