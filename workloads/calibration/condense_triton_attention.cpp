#include <algorithm>
#include <array>
#include <cmath>

#include "workloads/calibration/harvest.h"
#include "workloads/calibration/triton_attention.h"

namespace moebius {
namespace {

constexpr AttentionTime kPublishedTimes[] = {
    {false, 48, 64, 512, 0.131688},   {false, 48, 64, 1024, 0.391844},  {false, 48, 64, 2048, 1.30519},
    {false, 48, 64, 4096, 4.62302},   {false, 48, 64, 8192, 17.5131},   {false, 48, 64, 16384, 68.4534},
    {false, 48, 64, 32768, 270.655},  {true, 48, 64, 512, 0.406348},    {true, 48, 64, 1024, 1.0297},
    {true, 48, 64, 2048, 2.98546},    {true, 48, 64, 4096, 9.8089},     {true, 48, 64, 8192, 34.9952},
    {true, 48, 64, 16384, 132.74},    {true, 48, 64, 32768, 542.223},   {false, 32, 128, 512, 0.138271},
    {false, 32, 128, 1024, 0.391521}, {false, 32, 128, 2048, 1.26844},  {false, 32, 128, 4096, 4.4557},
    {false, 32, 128, 8192, 16.7643},  {false, 32, 128, 16384, 65.2216}, {false, 32, 128, 32768, 257.251},
    {true, 32, 128, 512, 0.672826},   {true, 32, 128, 1024, 1.71843},   {true, 32, 128, 2048, 4.93675},
    {true, 32, 128, 4096, 15.9116},   {true, 32, 128, 8192, 55.3574},   {true, 32, 128, 16384, 208.188},
    {true, 32, 128, 32768, 806.037},  {false, 16, 64, 512, 0.058591},   {false, 16, 64, 1024, 0.143337},
    {false, 16, 64, 2048, 0.414458},  {false, 16, 64, 4096, 1.39084},   {false, 16, 64, 8192, 5.06794},
    {false, 16, 64, 16384, 19.4423},  {false, 16, 64, 32768, 75.5016},  {true, 16, 64, 512, 0.16151},
    {true, 16, 64, 1024, 0.388954},   {true, 16, 64, 2048, 1.07581},    {true, 16, 64, 4096, 3.40162},
    {true, 16, 64, 8192, 11.9151},    {true, 16, 64, 16384, 44.6602},   {true, 16, 64, 32768, 175.038},
};

constexpr double kTileOfTriton = 128;
constexpr int kCoresOfA100 = 108;
constexpr int kKernelsBack = 3;  // dq is cleared and o multiplied with its gradient before
// TFLOP/s of all cores, and keys that a tile passes over beside its own while nothing is multiplied.
struct Constants {
  double head_dim, rate, beside;
};
constexpr std::array kTritonForward{Constants{64, 110, 379}, Constants{128, 141, 308}};
constexpr std::array kTritonBackward{Constants{64, 133, 630}, Constants{128, 114, 649}};

// Between the sizes that were measured; beyond them those of the nearer.
Constants constants_of(const std::array<Constants, 2>& known, int head_dim) {
  const double at = std::clamp<double>(head_dim, known[0].head_dim, known[1].head_dim);
  const double share = std::log(at / known[0].head_dim) / std::log(known[1].head_dim / known[0].head_dim);
  return {at, known[0].rate + share * (known[1].rate - known[0].rate),
          known[0].beside + share * (known[1].beside - known[0].beside)};
}

}  // namespace

std::span<const AttentionTime> published_triton_attention() {
  return kPublishedTimes;
}

double triton_attention_seconds(const Accelerator& chip, const AttentionSize& size) {
  const Constants of = constants_of(size.backward ? kTritonBackward : kTritonForward, size.head_dim);
  const auto keys = static_cast<double>(size.keys);
  const double tiles = static_cast<double>(size.sequences) * size.heads * std::ceil(keys / kTileOfTriton);
  const double mean = size.causal ? keys / 2 : keys;
  const double products =
      (size.backward ? 10.0 : 4.0) * kTileOfTriton * size.head_dim;  // of a tile and a key
  const double passed = std::max(tiles / chip.cores * (mean + of.beside), keys + of.beside);
  return (size.backward ? kKernelsBack : 1) * chip.kernel_floor.seconds() +
         passed * products / (of.rate * 1e12 / kCoresOfA100);
}

void read_triton_attention(Harvest& harvest) {
  if (!harvest.is_ours("a100-sxm")) return;
  harvest.add_source({"PHI3SMALL",
                      "Microsoft, Phi-3-small-8k-instruct, triton_flash_blocksparse_attn.py: times of dense "
                      "attention in Triton on an A100, printed below the kernels",
                      "MIT", "2024-05-21"});
  add_attention_law(
      harvest, {.name = "Triton's FlashAttention of 2023",
                .stack = "flash-attention-triton",
                .source = "PHI3SMALL",
                .forward = "causal, a law of tiles that meets measured times of 1,024 tokens and more within "
                           "1% for heads of 128, 10% for heads of 64",
                .backward = "the same, within 1% and 6%",
                .seconds = triton_attention_seconds});
}

}  // namespace moebius
