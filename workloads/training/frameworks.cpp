#include "workloads/training/frameworks.h"

namespace moebius {
namespace {

TrainingPlan of_the_keys() {
  TrainingPlan plan;  // jobs that come from no scenario have exchanges beside compute
  plan.overlap_dispatch_combine = false;
  return plan;
}

// All of them clip gradients to a norm of 1 and send tokens to experts by the library's all-to-all.
TrainingPlan clipped() {
  TrainingPlan plan = of_the_keys();
  plan.clip = 1;
  plan.exchange = Algorithm::kLibrary;
  return plan;
}

TrainingPlan megatron_2022() {
  TrainingPlan plan = clipped();
  plan.slicing = Slicing::kEven;
  plan.blocking_messages = true;
  plan.attention = AttentionKernels::kUnfused;
  plan.loss = LossKernels::kSeparate;
  plan.biases = BiasKernels::kApart;
  plan.separate_update = true;
  return plan;
}

TrainingPlan megatron_2021() {
  TrainingPlan plan = megatron_2022();
  plan.separate_norm_grad = true;
  plan.separate_accumulation = true;
  plan.overlap_tensor_gradients = false;
  plan.gradients = DType::kBf16;
  return plan;
}

TrainingPlan megatron_core() {
  TrainingPlan plan = clipped();
  plan.slicing = Slicing::kEven;
  plan.zero = 1;
  plan.overlap_gradients = true;
  plan.expert_by_expert = true;
  plan.context = ContextKind::kRing;
  plan.launch = LaunchMode::kEager;
  return plan;
}

TrainingPlan nemo() {
  TrainingPlan plan = megatron_core();
  plan.overlap_weights = true;
  plan.gradients = DType::kBf16;
  plan.launch = LaunchMode::kHidden;
  return plan;
}

// Parameters in shards; 8-bit products are of weights that stay in BF16.
TrainingPlan sharded(Scaling scaling) {
  TrainingPlan plan = clipped();
  plan.zero = 3;
  plan.scaling = scaling;
  plan.half_weights = true;
  return plan;
}

TrainingPlan fsdp() {
  TrainingPlan plan = sharded(Scaling::kTensor);
  plan.shard_buffers = ShardBuffers::kFlat;
  plan.gradients = DType::kBf16;
  plan.biases = BiasKernels::kSummedApart;
  plan.separate_update = true;
  plan.eager_elementwise = true;
  plan.launch = LaunchMode::kEager;
  plan.recompute_stops = true;
  return plan;
}

TrainingPlan torchtitan() {
  TrainingPlan plan = sharded(Scaling::kTensor);
  plan.gather_passes = true;
  plan.overlap_tensor_gradients = false;
  plan.recompute_stops = true;
  plan.shard_buffers = ShardBuffers::kCopied;
  plan.loss = LossKernels::kAutocast;
  plan.biases = BiasKernels::kSummedApart;
  return plan;
}

TrainingPlan maxtext() {
  TrainingPlan plan = sharded(Scaling::kHistory);
  plan.capacity_of_sequence = true;
  plan.expert_buffers = ExpertBuffers::kOneHot;
  plan.gradients = DType::kBf16;
  plan.recompute_stops = true;
  return plan;
}

TrainingPlan mindspeed() {
  TrainingPlan plan = clipped();
  plan.slicing = Slicing::kEven;
  plan.blocking_messages = true;
  plan.loss = LossKernels::kSeparate;
  plan.biases = BiasKernels::kApart;
  plan.separate_accumulation = true;
  return plan;
}

std::vector<TrainingFramework> all() {
  return {
      {"none", "no framework: the defaults of the keys themselves", of_the_keys(), ""},
      {"megatron-lm-2021",
       "Megatron-LM of SC'21, and what was made of it: Megatron-DeepSpeed, GPT-NeoX, GLM-130B",
       megatron_2021(),
       "Megatron-LM v2.5: megatron/model/transformer.py (CoreAttention by torch.baddbmm, softmax and "
       "dropout), "
       "fused_layer_norm.py (apex), mpu/cross_entropy.py (FP32 logits, step by step), mpu/layers.py (sums of "
       "the "
       "reverse pass in line), p2p_communication.py "
       "(torch.cuda.synchronize after each exchange), "
       "optimizer/optimizer.py (unscale, clip and copies apart from FusedAdam), arguments.py (--clip-grad "
       "1.0; "
       "FP16 gradients are summed as such); PyTorch 1.9, aten/src/ATen/native/Linear.cpp (of inputs of three "
       "dimensions a bias is added behind the product: output.add_), whose gradient is a sum apart"},
      {"megatron-lm-2022",
       "Megatron-LM 3.0 of 2022, before fused attention: sums of the reverse pass beside weight gradients, "
       "which are added by the product itself",
       megatron_2022(),
       "Megatron-LM v3.0: megatron/core/tensor_parallel/layers.py "
       "(LinearWithGradAccumulationAndAsyncCommunication: output + bias, grad_output.sum), arguments.py "
       "(bf16 sets "
       "accumulate_allreduce_grads_in_fp32; --no-async-tensor-model-parallel-allreduce and "
       "--no-gradient-accumulation-fusion turn the defaults off), fused_layer_norm.py (persistent kernel), "
       "p2p_communication.py (torch.cuda.synchronize after each exchange)"},
      {"megatron-core",
       "Megatron-Core with Transformer Engine: distributed optimizer, FP32 gradients summed beside the last "
       "reverse pass, experts product by product, kernels launched one by one",
       megatron_core(),
       "Megatron-LM, examples and core/distributed (--use-distributed-optimizer, --overlap-grad-reduce, "
       "accumulate_allreduce_grads_in_fp32 with bf16), core/transformer/moe/experts.py (TEGroupedMLP: one "
       "GEMM "
       "for each expert, on several streams), arguments.py (cp_comm_type p2p; --clip-grad 1.0; layers divide "
       "over stages; DeepEP only by --moe-token-dispatcher-type flex with --moe-enable-deepep)"},
      {"nemo",
       "NeMo and Megatron-Bridge by their performance recipes: Megatron-Core with BF16 gradients, updated "
       "weights gathered beside the first forward pass",
       nemo(),
       "NeMo, nemo/lightning/pytorch/callbacks/megatron_comm_overlap.py, and Megatron-Bridge, "
       "training/comm_overlap.py (data-parallel: overlap_grad_reduce and overlap_param_gather true); "
       "performance recipes: grad_reduce_in_fp32 false, use_distributed_optimizer true, gradient_clip_val "
       "1.0"},
      {"fsdp", "PyTorch's FSDP of flat parameters under an eager model (fms-fsdp, Hugging Face)", fsdp(),
       "PyTorch, torch/distributed/fsdp/_flat_param.py and _runtime_utils.py (gradients are put together and "
       "divided before they are summed, in the reduce_dtype bf16 of fms-fsdp's policies); LlamaRMSNorm and "
       "rotations operation by operation; AdamW for-each; clip_grad_norm_ 1.0; 8-bit products by torchao, of "
       "weights that stay in BF16; torch/utils/checkpoint.py since 2.1 (without reentry, as fms-fsdp asks "
       "for, it ends when all that is read has been computed: early_stop; with it, as Hugging Face's "
       "trainer long did, it does not)"},
      {"torchtitan", "torchtitan and other users of FSDP2 with torch.compile (prime-rl, OLMo-core)",
       torchtitan(),
       "torchtitan, torchtitan/parallelisms (fully_shard, param_dtype bf16, reduce_dtype float32; "
       "nn.Linear, whose gradient of a bias is a sum apart), train.py "
       "(cross_entropy of float32 logits, max_norm 1.0), float8 (tensorwise, weights kept in high "
       "precision); "
       "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py (copy-in, copy-out); "
       "torch/utils/checkpoint.py (early_stop since 2.1; torchtitan itself asks for early_stop false since "
       "September 2025, but compiled, what nobody reads is dropped); "
       "torch/distributed/_functional_collectives.py (all_gather_tensor waits and concatenates, "
       "reduce_scatter_tensor concatenates before, where the dimension is not the first), "
       "tensor/parallel/style.py (SequenceParallel, dimension 1); a linear's two gradients are one node of "
       "autograd, behind which sums begin"},
      {"maxtext", "JAX on GPUs: MaxText, Paxml", maxtext(),
       "MaxText, MaxText/configs/base.yml (ici_fsdp_parallelism, gradient_clipping_threshold 1.0, grad_dtype "
       "of "
       "the activations), Transformer Engine for JAX (DelayedScaling); jax.checkpoint, of which XLA drops "
       "what nobody reads; layers/moe.py (capacity_factor above 0: generate_masks, a capacity for each "
       "sequence; dense_matmul, einsums BSM,BSEC->EBCM and EBCM,BSEC->BSM)"},
      {"mindspeed", "MindSpeed-LLM (ModelLink) on Ascend", mindspeed(),
       "MindSpeed-LLM, examples (--use-flash-attn, --use-fused-rmsnorm, --no-gradient-accumulation-fusion, "
       "Megatron-Core's own layers, whose biases are output + bias and grad_output.sum, "
       "--clip-grad 1.0; bf16 with FP32 gradients; --overlap-grad-reduce is asked for where it is used)"},
  };
}

}  // namespace

std::span<const TrainingFramework> training_frameworks() {
  static const std::vector<TrainingFramework> frameworks = all();
  return frameworks;
}

}  // namespace moebius
