// Encoders that turn images into tokens of a language model: vision transformers, whose layers see patches of
// one image, all or those of a window. Figures from their published configurations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace moebius {

struct VisionEncoder {
  std::string_view id;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int width = 0;          // intermediate size of the MLP
  bool gated = false;     // SwiGLU (three matrices); otherwise two
  int patch = 0;          // pixels along each side
  int merge = 1;          // so many patches along each side become one token of the language model
  int window = 0;         // patches of a window of attention; 0: all layers see the whole image
  int full_every = 1;     // with windows: of so many layers the last one sees the whole image
  int extra_patches = 0;  // beside those of the image, such as a class token
  int image_patches = 0;  // of an image of the size that it was trained on, or of a usual one
  std::string_view source;

  int patches_of_token() const { return merge * merge; }
  bool sees_all(int layer) const { return window == 0 || layer % full_every == full_every - 1; }
};

std::span<const VisionEncoder> vision_encoders();

// Weights, the map to the language model of `outputs` columns included: a merger of two matrices over the
// merged patches, as Qwen2.5-VL and InternVL have it.
double parameters(const VisionEncoder& encoder, int outputs);

}  // namespace moebius
