#include "models/vision_encoder.h"

#include <array>

namespace moebius {
namespace {

// A usual image is one of about a megapixel where sizes are free: 1,036 x 1,036 pixels are 74 x 74 patches.
constexpr std::array kEncoders{
    VisionEncoder{.id = "qwen2.5-vl-vit",
                  .layers = 32,
                  .hidden = 1280,
                  .heads = 16,
                  .width = 3420,
                  .gated = true,
                  .patch = 14,
                  .merge = 2,
                  .window = 64,
                  .full_every = 8,
                  .image_patches = 5476,
                  .source = "vision_config of Qwen/Qwen2.5-VL-7B-Instruct config.json: depth 32, window 112 "
                            "pixels, full attention in layers 7, 15, 23, 31"},
    VisionEncoder{
        .id = "internvit-6b",
        .layers = 45,
        .hidden = 3200,
        .heads = 25,
        .width = 12800,
        .patch = 14,
        .merge = 2,
        .extra_patches = 1,
        .image_patches = 1024,
        .source = "vision_config of OpenGVLab/InternVL2_5-78B config.json (InternViT-6B-448px-V2_5)"},
    VisionEncoder{
        .id = "internvit-300m",
        .layers = 24,
        .hidden = 1024,
        .heads = 16,
        .width = 4096,
        .patch = 14,
        .merge = 2,
        .extra_patches = 1,
        .image_patches = 1024,
        .source = "vision_config of OpenGVLab/InternVL2_5-8B config.json (InternViT-300M-448px-V2_5)"},
};

}  // namespace

std::span<const VisionEncoder> vision_encoders() {
  return kEncoders;
}

// Attention has four square matrices, and the map of a patch's three colours is counted for two frames where
// the encoder merges them (Qwen); it is below a thousandth either way.
double parameters(const VisionEncoder& encoder, int outputs) {
  const double h = encoder.hidden, merged = h * encoder.patches_of_token();
  const double layer = 4 * h * h + (encoder.gated ? 3.0 : 2.0) * h * encoder.width + 2 * h;
  const double patches = 3.0 * encoder.patch * encoder.patch * h;
  return encoder.layers * layer + patches + merged * merged + merged * outputs;
}

}  // namespace moebius
