#include <algorithm>
#include <array>
#include <cmath>

#include "workloads/calibration/flash_attention_2.h"
#include "workloads/calibration/harvest.h"

namespace moebius {
namespace {

constexpr AttentionRate kPublishedRates[] = {
    {false, false, 64, 512, 282},   {false, false, 64, 1024, 306},  {false, false, 64, 2048, 318},
    {false, false, 64, 4096, 321},  {false, false, 64, 8192, 322},  {false, false, 64, 16384, 324},
    {false, true, 64, 512, 180},    {false, true, 64, 1024, 229},   {false, true, 64, 2048, 262},
    {false, true, 64, 4096, 284},   {false, true, 64, 8192, 295},   {false, true, 64, 16384, 299},
    {false, false, 128, 512, 309},  {false, false, 128, 1024, 350}, {false, false, 128, 2048, 362},
    {false, false, 128, 4096, 368}, {false, false, 128, 8192, 370}, {false, false, 128, 16384, 370},
    {false, true, 128, 512, 191},   {false, true, 128, 1024, 260},  {false, true, 128, 2048, 298},
    {false, true, 128, 4096, 319},  {false, true, 128, 8192, 333},  {false, true, 128, 16384, 335},
    {false, false, 256, 512, 275},  {false, false, 256, 1024, 313}, {false, false, 256, 2048, 321},
    {false, false, 256, 4096, 323}, {false, false, 256, 8192, 324}, {false, false, 256, 16384, 326},
    {false, true, 256, 512, 208},   {false, true, 256, 1024, 251},  {false, true, 256, 2048, 278},
    {false, true, 256, 4096, 293},  {false, true, 256, 8192, 297},  {false, true, 256, 16384, 298},
    {true, false, 64, 512, 198},    {true, false, 64, 1024, 238},   {true, false, 64, 2048, 264},
    {true, false, 64, 4096, 279},   {true, false, 64, 8192, 287},   {true, false, 64, 16384, 291},
    {true, false, 128, 512, 214},   {true, false, 128, 1024, 260},  {true, false, 128, 2048, 291},
    {true, false, 128, 4096, 310},  {true, false, 128, 8192, 318},  {true, false, 128, 16384, 322},
};

constexpr double kTileQueries = 128, kTail = 0.5;
constexpr int kPublishedCores = 132;
// Keys that a tile passes over beside its own, in which nothing is multiplied: whole, masked, backward.
constexpr double kWholeKeys = 45, kMaskedKeys = 160, kBackwardKeys = 230;
constexpr double kMaskedShare = 0.965;  // of the rate over whole blocks
// TFLOP/s of all cores, by the size of a head.
struct Rate {
  double head_dim, forward, backward;
};
constexpr std::array kRates{Rate{64, 329, 300}, Rate{128, 384, 338}, Rate{256, 350, 308}};

double rate_of(int head_dim, bool backward) {
  const double at = std::clamp<double>(head_dim, kRates.front().head_dim, kRates.back().head_dim);
  const Rate* above = &kRates[1];
  while (above->head_dim < at) ++above;
  const Rate& below = above[-1];
  const double share = std::log(at / below.head_dim) / std::log(above->head_dim / below.head_dim);
  const double low = backward ? below.backward : below.forward,
               high = backward ? above->backward : above->forward;
  return (low + share * (high - low)) * 1e12;
}

}  // namespace

std::span<const AttentionRate> published_flash_attention_2() {
  return kPublishedRates;
}

double flash_attention_2_seconds(const Accelerator& chip, const AttentionSize& size) {
  const auto keys = static_cast<double>(size.keys);
  const double tiles = static_cast<double>(size.sequences) * size.heads * std::ceil(keys / kTileQueries);
  const double mean = size.causal ? keys / 2 : keys;
  const double forward = size.causal ? kMaskedKeys : kWholeKeys;
  const double beside = size.backward ? kBackwardKeys : forward;
  const double products = (size.backward ? 10.0 : 4.0) * kTileQueries * size.head_dim;  // of a tile and a key
  const double of_core =
      rate_of(size.head_dim, size.backward) / kPublishedCores * (size.causal ? kMaskedShare : 1);
  const double longest = keys + beside;
  // Masked tiles are dealt out shortest first; backward, where they are of keys, longest first.
  const double last = size.backward && size.causal ? kTileQueries + beside : longest;
  const double waves = tiles / chip.cores * (mean + beside) + kTail * last;
  return chip.kernel_floor.seconds() + std::max(waves, longest) * products / of_core;
}

void read_flash_attention_2(Harvest& harvest) {
  if (!harvest.is_ours("h100-sxm") && !harvest.is_ours("h200-sxm")) return;
  harvest.add_source({"FLASHATTENTION3",
                      "Shah et al. 2024 (FlashAttention-3, arXiv 2407.08608), figures 5 and 6: "
                      "FlashAttention-2 on an H100 SXM5",
                      "published figures", "2024-07-11"});
  add_attention_law(
      harvest,
      {.name = "FlashAttention-2",
       .stack = "flash-attention-2",
       .source = "FLASHATTENTION3",
       .forward = "causal, a law of tiles that meets published rates of 1,024 tokens and more within 9%",
       .backward = "a law of tiles that meets published rates without mask within 6%; masked ones as forward",
       .seconds = flash_attention_2_seconds});
}

}  // namespace moebius
