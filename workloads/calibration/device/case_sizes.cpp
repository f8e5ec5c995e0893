#include "workloads/calibration/device/case_plan.h"

namespace moebius {

// Models whose hidden size is 64 to 1,024, sequences of 16 to 256 tokens; products of routers and of latent
// ranks are as narrow as 8.
CaseSizes host_case_sizes() {
  return {.m = {1, 4, 16, 64, 256},
          .n = {8, 32, 128, 512, 2048},
          .k = {8, 32, 128, 512, 2048},
          .experts = {1, 2, 8},
          .expert_rows = {1, 8, 32, 64, 128},
          .expert_n = {8, 128, 512},
          .expert_k = {8, 128, 512},
          .heads = {{1, 1, 8, 8}, {4, 4, 24, 16}, {16, 4, 128, 128}, {8, 2, 64, 64}, {16, 16, 192, 128}},
          .other_heads = {{8, 4, 96, 96}, {2, 2, 48, 32}},
          .sequences = {1, 2, 4},
          .queries = {8, 16, 32, 64, 128},
          .decodes = {1, 4, 16},
          .keys = {16, 32, 64, 128, 512},
          .latent = {},
          .stream_rows = {1, 8, 32, 128, 512},
          .widths = {8, 32, 128, 512, 2048},
          .vocabularies = {64, 512, 2048},
          .parameters = {256, 4096, 32768, 131072, 1048576},
          .most_elements = 1 << 22};
}

// DeepSeek-V3 (hidden 7168), Qwen3-235B and Mixtral 8x7B (4096), Qwen3-30B (2048), and their routers.
CaseSizes gpu_case_sizes() {
  return {.m = {1, 16, 64, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16384},
          .n = {128, 576, 2048, 4096, 7168, 24576, 36864},
          .k = {128, 512, 1536, 2048, 4096, 7168, 18432},
          .experts = {1, 8, 32},
          .expert_rows = {1, 32, 128, 256, 512, 1024, 2048},
          .expert_n = {256, 2048, 4096, 7168, 28672},
          .expert_k = {256, 2048, 4096, 7168, 14336},
          .heads = {{4, 4, 64, 64},
                    {32, 8, 128, 128},
                    {128, 128, 192, 128},
                    {64, 4, 128, 128},
                    {16, 16, 192, 128}},
          .other_heads = {{40, 8, 128, 128}, {24, 4, 96, 96}},
          .sequences = {1, 2, 4},
          .queries = {64, 256, 1024, 2048, 4096},
          .decodes = {1, 16, 128},
          .keys = {128, 1024, 4096, 8192, 16384},
          .latent = {{16, 1, 576, 512}, {64, 1, 576, 512}, {128, 1, 576, 512}},
          .stream_rows = {1, 128, 1024, 4096, 16384},
          .widths = {64, 512, 2048, 7168, 32768},
          .vocabularies = {1024, 32768, 131072},
          .parameters = {4096, 1 << 20, 1 << 24, 1 << 26, 1 << 28},
          .most_elements = 1 << 28};
}

}  // namespace moebius
