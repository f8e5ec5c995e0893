#include "workloads/serving/frameworks.h"

#include <array>

namespace moebius {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

// Free when weights come, by SGLang's log ("Load weight begin. avail mem"): 78.3 to 78.8 GiB of the 79.65 of one
// H100 and 177.6 of the 178.35 of one B200; with ranks beside it 77.2 to 77.8 (H100, H800), 137.9 and 138.1 of
// 140.4 (H200), 175.3 (B200). Its pull requests 2223 (2024-11) and 8112 (2025-08), reports of users on GitHub.
constexpr DeviceRuntime kCuda{Bytes{1.0 * kGib}, Bytes{1.4 * kGib}};

constexpr std::array kFrameworks{
    Framework{.name = "none", .help = "no framework: the defaults of the keys themselves"},
    Framework{
        .name = "vllm",
        .help = "vLLM, its V1 engine behind an OpenAI server",
        .batching = BatchPolicy::kMixed,
        .token_budget = 8192,
        .max_batch = 1024,
        .share_of = CacheShare::kUsed,
        .runtime = kCuda,
        .sampler_bytes = 26,
        .block_tokens = 16,
        .keeps_windows_only = true,
        .fused = true,
        .fused_head_norms = false,
        .fused_append = false,
        .fused_normed_append = false,
        .quantised_reduction = true,
        .absorbed_below = 1,
        .sampling = Sampling::kGathered,
        .launch = LaunchMode::kGraph,
        .expert_calls = ExpertCalls::kFlashInfer,
        .captured_most = 512,
        .captured_counts = CapturedCount::kTokens,
        .captured_prompts = 512,
        .overlap = true,
        .decided_ahead = true,
        .smaller = {{{.below = 70 * kGib, .family = "a100", .token_budget = 2048, .max_batch = 256}}},
        .collectives = CollectiveSource::kVllm,
        .dispatch = Algorithm::kRing,
        .stacks = {"vllm-", "sglang-"},
        .host_per_iteration = Time{1'072'000},
        .host_per_sequence = Time{1'100},
        .host_per_request = Time{5'000'000},
        .host_per_prompt_token = Time{11'000},
        .host_per_launch = Time{60'000},
        .host_per_submission = Time{811'000},
        .source = "vLLM, vllm/engine/arg_utils.py (max_num_batched_tokens 8192, max_num_seqs 1024 for an "
                  "API server on devices of 70 GiB or more that are no A100, else 2048 and 256), "
                  "config/cache.py (gpu_memory_utilization 0.9, "
                  "block_size 16), v1/worker/gpu_model_runner.py (profile_run samples for max_num_seqs "
                  "sequences: logits in BF16 and FP32, sorted, 64-bit places, probabilities and what is put "
                  "back, 26 bytes of each), "
                  "v1/core/kv_cache_coordinator.py (the hybrid manager of sliding windows, "
                  "where no "
                  "connector takes caches elsewhere), config/parallel.py (all2all_backend "
                  "\"allgather_reducescatter\"); "
                  "chunked prefill and asynchronous scheduling are on by default; config/vllm.py "
                  "(_set_cudagraph_sizes: max_cudagraph_capture_size 512, or twice the tokens of "
                  "max_num_seqs sequences where these are fewer; gpt-oss 1024, "
                  "model_executor/models/config.py. v1/cudagraph_dispatcher.py: what has more tokens is not "
                  "replayed, what has prompts only between its attention, cudagraph_mode "
                  "FULL_AND_PIECEWISE), model_executor/layers/attention/mla_attention.py (prompts, cached "
                  "context of theirs included, by heads, decoding absorbed)",
        .fitted =
            "least mean of |ln(ours / measured)| of the mean time to the first token over the 22 rows with "
            "sha256(key) mod 10 = 0 of the table of measured servers that are aggregated behind the "
            "framework's own front with 64 users at most, of a grid of "
            "launches, requests and tokens that were each simulated, 2026-11-23: all before a first token "
            "that is not simulated; no cost of an iteration is fitted; launches again 2026-11-28, since "
            "kernels of experts are one call and those of heads are several",
        .profiled =
            "vLLM 0.26, its second model runner, one sequence of Qwen3-0.6B on an A100: ranges of Nsight "
            "Systems in a user's study (\"vLLM Nsight Systems\", 2026-08-21). schedule() takes 0.092 ms, "
            "execute_model() with full CUDA graphs 1.038, less the launch of the graph, 0.058, which "
            "counts as launches do; sampling is submitted behind it in 0.811. A sequence: "
            "update_from_output(), 0.142 ms for 128 and 0.287 for 256 (pull request 46112, 2026-06); what "
            "else grows with them is not published, and not counted"},
    Framework{
        .name = "vllm-v0",
        .help = "vLLM 0.5.3, its engine before V1, one process with the server: everything waits for it",
        .chunked = false,
        .token_budget = 8192,
        .max_batch = 256,
        .share_of = CacheShare::kUsed,
        .runtime = kCuda,
        .block_tokens = 16,
        .fused = true,
        .fused_head_norms = false,
        .fused_append = false,
        .fused_normed_append = false,
        .absorbed_below = 1,
        .sampling = Sampling::kGathered,
        .launch = LaunchMode::kGraph,
        .captured_most = 256,
        .collectives = CollectiveSource::kVllm,
        .dispatch = Algorithm::kRing,
        .stacks = {"vllm-", "sglang-"},
        .host_per_iteration = Time{8'060'000},
        .source =
            "vLLM 0.5.3, vllm/config.py (SchedulerConfig: enable_chunked_prefill false, "
            "max_num_batched_tokens the longest sequence of the model and 2048 at least: 8192 of Llama 3; "
            "since pull request 6666 models of more than 32K have chunks of 512 beside decoding), "
            "engine/arg_utils.py (max_num_seqs 256, block_size 16, gpu_memory_utilization 0.9, "
            "enable_prefix_caching false), core/scheduler.py (prompts before decoding, never both), "
            "worker/model_runner.py (_BATCH_SIZES_TO_CAPTURE: 1, 2, 4 and multiples of 8 up to 256, decoding "
            "alone); the engine decides when the tokens of the iteration before are there",
        .profiled =
            "vLLM's own profile of Llama 3 8B on a H100 (its post on 0.6.0, 2024-09-05: 33% of the time in "
            "the API server, 29% in scheduling and preparing, 38% on the GPU) of the 13 ms a token that it "
            "names for light load: 62% of them. What more sequences take is not published, and not counted "
            "(issue 6854 has 5 to 13 ms)"},
    Framework{
        .name = "sglang",
        .help = "SGLang, its scheduler with overlap",
        .token_budget = 16384,
        .max_batch = 2048,
        .device_share = 0.88,
        .reserve = {.always = 512,
                    .per_prompt_token = 1.5,
                    .per_captured = 2,
                    .per_device = 128,
                    .per_captured_of_replica = 3,
                    .above_300_of_replica = 1.5,
                    .least = 10240},
        .runtime = kCuda,
        .fused = true,
        .fused_head_norms = false,
        .fused_append = false,
        .fused_normed_append = false,
        .output_reserve = 0.098,
        .first_reserve = 0.7,
        .reserve_decay = 600,
        .newcomer_reserve = 4096,
        .absorbed_below = 8192,
        .absorbed_by_chip = true,
        .sampling = Sampling::kGathered,
        .launch = LaunchMode::kGraph,
        .expert_calls = ExpertCalls::kFlashInfer,
        .captured_most = kCapturedBySize,
        .overlap = true,
        .decided_ahead = true,
        .smaller = {{{.below = 160 * kGib, .token_budget = 8192},
                     {.below = 60 * kGib, .token_budget = 4096},
                     {.below = 35 * kGib, .token_budget = 2048}}},
        .dispatch = Algorithm::kRing,
        .stacks = {"sglang-"},
        .host_per_iteration = Time{310'000},
        .host_per_request = Time{10'000'000},
        .host_per_prompt_token = Time{8'000},
        .host_per_launch = Time{75'000},
        .source =
            "SGLang, python/sglang/srt/server_args.py (max_prefill_tokens 16384, chunked prefill of as many "
            "tokens, of 8192 on devices of less than 160 GiB, 4096 of less than 60, 2048 of less than 35, "
            "mem_fraction_static what 512 MiB, 1.5 a token of a chunk, 2 a captured sequence, 128 a device "
            "and, "
            "with attention replicas, 3 a captured sequence of each, half as much again from 300 on, leave, "
            "10 GiB at least on devices of more than 60; captured are, on less than 4 devices and on more, "
            "24 "
            "and 80 below 35 GiB, 32 and 160 below 60, 256 and 512 below 160, else 512 (cuda_graph_max_bs), "
            "and more sequences of any rank are not replayed (model_executor/cuda_graph_runner.py, can_run); "
            "overlap schedule on; "
            "prompts are not mixed with decoding "
            "unless enable_mixed_chunk is given; moe_a2a_backend \"none\" gathers all tokens), "
            "environ.py (of what running sequences may still generate admission leaves free "
            "SGLANG_INIT_NEW_TOKEN_RATIO 0.7, which falls to SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR 0.14 of it in "
            "SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS 600 decoding iterations that retract nobody), "
            "managers/schedule_policy.py (PrefillAdder: CLIP_MAX_NEW_TOKENS 4096 of each, whole of who is "
            "admitted), models/deepseek_common/attention_backend_handler.py (fa3, the default of Hopper: "
            "prompts behind 1 to 8,191 cached tokens, SGLANG_CHUNKED_PREFIX_CACHE_THRESHOLD, are computed "
            "absorbed; trtllm_mla and aiter, those of Blackwell and CDNA: none; triton: all behind any)",
        .fitted =
            "least mean of |ln(ours / measured)| of the mean time to the first token over the 6 rows with "
            "sha256(key) mod 10 = 0 of the table of measured servers that are aggregated behind the "
            "framework's own front with 64 users at most, of a grid of "
            "launches, requests and tokens that were each simulated, 2026-11-23: all before a first token "
            "that is not simulated; no cost of an iteration is fitted; launches again 2026-11-28, since "
            "kernels of experts are one call and those of heads are several",
        .profiled =
            "its loop around a forward pass that only waits 2.632 ms, one user: 2.94 ms a token, none of "
            "it overlapped (tenstorrent/tt-inference-server issue 3560, 2026-05). Inputs that go to a GPU "
            "and the submission of sampling are not in it, and what a sequence adds is not published: not "
            "counted (never more than 3 ms for 300 requests: WukLab's profile of 2024-09-10)"},
    Framework{
        .name = "trtllm",
        .help = "TensorRT-LLM, its PyTorch backend with in-flight batching",
        .batching = BatchPolicy::kMixed,
        .chunked = false,
        .token_budget = 8192,
        .max_batch = 2048,
        .share_of = CacheShare::kFree,
        .runtime = kCuda,
        .block_tokens = 32,
        .fused = true,
        .fused_normed_append = false,
        .fused_reduction = true,
        .reduces_normed_dense = false,
        .quantised_reduction = true,
        .output_reserve = 1,
        .absorbed_below = 1,
        .sampling = Sampling::kGathered,
        .launch = LaunchMode::kGraph,
        .expert_calls = ExpertCalls::kOne,
        .captured_doubled_from = 128,
        .exact_doubled_from = 32,
        .overlap = true,
        .decided_ahead = true,
        .collectives = CollectiveSource::kTrtllm,
        .dispatch = Algorithm::kRing,
        .stacks = {"trtllm-"},
        .host_per_sequence = Time{1'300},
        .host_per_request = Time{10'000'000},
        .host_per_prompt_token = Time{7'000},
        .host_per_launch = Time{56'000},
        .source =
            "TensorRT-LLM, tensorrt_llm/llmapi/llm_args.py (max_num_tokens 8192, max_batch_size "
            "2048, enable_chunked_prefill false, overlap scheduler on, free_gpu_memory_fraction "
            "0.9, tokens_per_block 32, cuda_graph_config: with enable_padding multiples of 8 up to 128, "
            "then powers of two; bench/benchmark/utils/general.py: trtllm-bench pads, and captures up to the "
            "most that may run, as recipes do; a server that is told nothing ends at 128 and pads nothing, "
            "which captures 1 to 32, 64 and 128, capacity_scheduler_policy "
            "GUARANTEED_NO_EVICT: a sequence starts "
            "when the cache can hold all that it may generate), _torch/modules/fused_moe (all tokens "
            "gathered where no "
            "NVLink domain of several nodes is found), AllReduceFusionOp (Llama 3 and 4 since pull "
            "request 6205, DeepSeek, Qwen3's experts; not modeling_qwen3.py), _torch/modules/attention.py "
            "(MLA: forward_context_with_cached_kv and with_chunked_prefill compute prompts by heads)",
        .fitted =
            "least mean of |ln(ours / measured)| of the mean time to the first token over the 41 rows with "
            "sha256(key) mod 10 = 0 of the table of measured servers that are aggregated, of a grid of "
            "launches, requests and tokens that were each simulated, 2026-11-22: all before a first token "
            "that is not simulated; no cost of an iteration is fitted",
        .profiled =
            "its scheduler alone: 4.4% of 45.11 ms for 1,536 sequences of a rank on GB200 (pull request "
            "10273, 2025-12). Inputs, sampler and responses are published for other cases only, and not "
            "counted"},
};

// SGLang's attention of latents by default: trtllm_mla on Blackwell, aiter on CDNA, else triton.
bool blows_up_all(const Accelerator& chip) {
  return chip.architecture == "blackwell" || chip.architecture == "blackwell-ultra" ||
         chip.architecture.starts_with("cdna");
}

}  // namespace

Framework on_device(Framework framework, const Accelerator& chip) {
  for (const SmallerDevice& row : framework.smaller) {
    const bool named = !row.family.empty() && chip.id.starts_with(row.family);
    if (chip.memory.value >= row.below && !named) continue;
    framework.token_budget = row.token_budget;
    if (row.max_batch > 0) framework.max_batch = row.max_batch;
  }
  return framework;
}

int absorbed_on(const Framework& framework, const Accelerator& chip) {
  if (!framework.absorbed_by_chip || chip.architecture == "hopper") return framework.absorbed_below;
  return blows_up_all(chip) ? 1 : kAlwaysAbsorbed;
}

bool launches_experts_once(ExpertCalls calls, const ServingPlan& plan, const Accelerator& chip) {
  if (calls != ExpertCalls::kFlashInfer) return calls == ExpertCalls::kOne;
  const bool generated = chip.architecture == "blackwell" || chip.architecture == "blackwell-ultra";
  return generated && element_bytes(plan.expert_gemm.value_or(plan.gemm)) < 2;
}

std::span<const Framework> frameworks() {
  return kFrameworks;
}

}  // namespace moebius
