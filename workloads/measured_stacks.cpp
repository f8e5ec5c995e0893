#include "workloads/measured_stacks.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/error.h"
#include "hw/profile.h"
#include "workloads/cost/measured_table.h"
#include "workloads/cost/profile_kinds.h"
#include "workloads/cost/stack_choice.h"

namespace moebius {
namespace {

constexpr std::string_view kSglang = "sglang-";

std::vector<std::string> compute_kinds() {
  std::vector<std::string> names;
  for (int kind = 0; kind < kNumOpKinds; ++kind)
    if (!is_communication(static_cast<OpKind>(kind)))
      names.emplace_back(to_string(static_cast<OpKind>(kind)));
  return names;
}

StackChoice choice_of(const Scenario& scenario) {
  try {
    return stack_choice(scenario.kernels);
  } catch (const Error& error) {
    scenario.kernels_at.fail(error.what());
  }
}

void check_names(const StackChoice& choice, const Place& place) {
  for (const StackChoice::Exception& other : choice.exceptions) {
    if (!kind_of(other.kind))
      place.fail(fmt::format("expected a kind of op, found \"{}\"{}", other.kind,
                             suggestion(other.kind, compute_kinds())));
    if (!parse_dtype(other.dtype))
      place.fail(fmt::format("expected a number format, as \"bf16\" or \"fp8\", found \"{}\"", other.dtype));
  }
}

}  // namespace

void check_stacks(const Scenario& scenario, const std::string& data) {
  if (scenario.kernels.empty() || !scenario.cluster) return;
  const StackChoice choice = choice_of(scenario);
  check_names(choice, scenario.kernels_at);
  std::set<std::string> chips, known;
  for (const Pool& pool : scenario.cluster->pools)
    if (chips.insert(pool.accelerator.id).second)
      for (const Profile& profile : find_profiles(pool.accelerator, data))
        for (const ProfileTable& table : profile.tables) known.insert(table.stack);
  const std::vector<std::string> stacks(known.begin(), known.end());
  for (const std::string& named : choice.named())
    if (!known.contains(named))
      scenario.kernels_at.fail(fmt::format(
          "expected software whose kernels are measured on {} ({}), found \"{}\"{}", fmt::join(chips, ", "),
          stacks.empty() ? "none is" : fmt::format("{}", fmt::join(stacks, ", ")), named,
          suggestion(named, stacks)));
}

ProductScales product_scales(const Scenario& scenario) {
  const bool trains = scenario.kind == ScenarioKind::kTraining;
  if (trains && scenario.plan.scaling == Scaling::kMicro) return ProductScales::kMicro;
  const bool one =
      scenario.fp8_scales == Fp8Scales::kTensor || (trains && has_one_scale(scenario.plan.scaling));
  return one ? ProductScales::kWhole : ProductScales::kBlock;
}

namespace {

bool has_kind(const ProfileTable& table, std::string_view kind) {
  return std::find(table.kinds.begin(), table.kinds.end(), kind) != table.kinds.end();
}

struct Preference {
  std::string_view stack;             // how its name begins
  std::optional<DType> dtype = {};    // of dense products in it alone, back too; nothing: all tables
  std::string_view variant = {};      // how the name ends then
  std::optional<DType> experts = {};  // of experts in it alone, whose weights are kept so, too

  bool met_by(const ProfileTable& table) const {
    const std::string_view name = table.stack;
    if (!name.starts_with(stack)) return false;
    // Tables of experts tell gradients, too, those of a latent's absorption do not.
    if (experts)
      return table.dtype == *experts && !table.stored && has_kind(table, "grouped_gemm_dgrad") &&
             name.find('+') == std::string_view::npos;
    if (!dtype) return true;
    const std::size_t plus = name.find('+');
    const bool dense = has_kind(table, "gemm") || has_kind(table, "gemm_wgrad");
    return dense && table.dtype == *dtype &&
           (plus == std::string_view::npos ? "" : name.substr(plus)) == variant;
  }
};

// In all that it does: tables count for both phases.
bool comes_by_deepep(const ServingPlan& plan) {
  const auto by_deepep = [&](bool decodes) {
    const Algorithm exchange = plan.exchange(decodes);
    return plan.sharing(decodes) == ExpertSharing::kDispatch &&
           (exchange == Algorithm::kHierarchical || exchange == Algorithm::kDirect);
  };
  return by_deepep(false) && by_deepep(true);
}

// Dense products on Blackwell. FP8 in blocks: SGLang's table is of DeepGEMM with the passes that pack its
// scales, 15 us where the product alone takes 8 in TensorRT-LLM's; that is what SGLang runs (who switches
// DeepGEMM off, as some servers do, names FlashInfer's products in /cluster/kernels), and not vLLM. FP4:
// kernels of TensorRT-LLM's table wait for each part of k (22 us for k 8192 and 8 us for k 1024, of any n),
// which tuned ones do not.
//
// Experts in FP8 blocks: SGLang's table is of FlashInfer's generated kernel, which routes, sorts and sums
// itself. Rows that DeepEP brings SGLang and vLLM multiply by DeepGEMM's grouped products (SGLang's
// ep_moe/layer.py, forward_deepgemm_contiguous and _masked), of which TensorRT-LLM's table is there: 78,000
// rows of 32 experts, 4096 x 7168, take 1.8 ms, and 3.5 by FlashInfer's.
void prefer_on_blackwell(std::string_view stack, const Scenario& scenario, std::vector<Preference>& first) {
  if (stack == "trtllm-") return first.push_back({"sglang-", DType::kFp4});
  if (scenario.fp8_scales != Fp8Scales::kTensor && comes_by_deepep(scenario.serving))
    first.push_back({.stack = "trtllm-", .experts = DType::kFp8});
  const bool own = scenario.stacks.front() == stack;
  if (scenario.fp8_scales != Fp8Scales::kTensor && !own) first.push_back({"trtllm-", DType::kFp8});
}

std::vector<Preference> preferences(const Scenario& scenario, const Accelerator& chip) {
  std::vector<Preference> first;
  const bool one_scale = product_scales(scenario) == ProductScales::kWhole;
  for (const std::string_view stack : scenario.stacks) {
    if (stack.empty()) continue;
    if (one_scale) first.push_back({stack, DType::kFp8, "+fp8-rowwise"});
    if (chip.architecture.starts_with("blackwell")) prefer_on_blackwell(stack, scenario, first);
    first.push_back({stack});
  }
  // Of the framework there may be no tables of this chip.
  if (one_scale) first.push_back({"", DType::kFp8, "+fp8-rowwise"});
  return first;
}

// The tables of a profile that meet it, which it loses; power is read from what is left.
Profile taken(Profile& profile, const Preference& preference) {
  Profile part{profile.accelerator, profile.reference, profile.sources, {}};
  const auto rest =
      std::stable_partition(profile.tables.begin(), profile.tables.end(),
                            [&](const ProfileTable& table) { return !preference.met_by(table); });
  part.tables.assign(std::make_move_iterator(rest), std::make_move_iterator(profile.tables.end()));
  profile.tables.erase(rest, profile.tables.end());
  return part;
}

// Casts of training with one scale a tensor run at memory's rate: Transformer Engine's on H200 take 0.90 ps
// an element by scales known beforehand (2.19 of 18.98 ms beside 12 products of 15,872 tokens, 4,096 and
// 16,384 wide), 3.3 bytes each, and 0.40 ps on B300; finding the largest before takes 0.51 and 0.54 ps more
// (NVIDIA/TransformerEngine, docs/examples/gemm_profiling, 2026-04). Tables have what servers run, which on
// H100 takes 2.5 to 3.5 ps and on B200 1.8.
void forget_casts(std::vector<Profile>& profiles) {
  const auto casts = [](const ProfileTable& table) {
    return table.dtype == DType::kFp8 &&
           std::all_of(table.kinds.begin(), table.kinds.end(), [](const auto& kind) {
             return kind == to_string(OpKind::kQuantise) || kind == to_string(OpKind::kTransposeQuantise);
           });
  };
  for (Profile& profile : profiles) std::erase_if(profile.tables, casts);
}

// Experts in MXFP4 before Blackwell. SGLang's tables are of weights that are blown up to BF16 when they are
// loaded: one row each of 128 experts of 5760 x 2880 takes H200 978 us, whose memory gives them in 885 in
// BF16 and in 235 in MXFP4. SGLang does so where ranks have experts whole (ep_size above 1;
// quantization/mxfp4.py, upcast_from_mxfp). Otherwise it runs triton_kernels (server_args.py), which blow
// them up in registers, as vLLM's Marlin and TensorRT-LLM's kernels do.
bool reads_experts_in_bf16(const Scenario& scenario, const Accelerator& chip) {
  if (scenario.stacks.front().empty() || chip.architecture.starts_with("blackwell")) return true;
  return scenario.stacks.front() == kSglang && scenario.serving.ep > 1;
}

void forget_experts_in_bf16(std::vector<Profile>& profiles) {
  const auto blown_up = [](const ProfileTable& table) {
    return table.stack.starts_with(kSglang) && has_kind(table, "grouped_gemm") &&
           table.dtype == DType::kBf16 && table.stored == DType::kFp4;
  };
  for (Profile& profile : profiles) std::erase_if(profile.tables, blown_up);
}

}  // namespace

// A chip may have tables of its own and, behind them, those of one that it is based on: what the software of
// the service runs comes first in both.
std::vector<Profile> profiles_for(const Scenario& scenario, const Accelerator& chip,
                                  const std::string& data) {
  std::vector<Profile> profiles = find_profiles(chip, data);
  require_known_kinds(profiles, data);
  if (scenario.kind == ScenarioKind::kTraining && has_one_scale(scenario.plan.scaling))
    forget_casts(profiles);
  if (!scenario.kernels.empty()) return profiles;
  if (!reads_experts_in_bf16(scenario, chip)) forget_experts_in_bf16(profiles);
  std::vector<Profile> ordered;
  for (const Preference& preference : preferences(scenario, chip))
    for (Profile& profile : profiles)
      if (Profile part = taken(profile, preference); !part.tables.empty()) ordered.push_back(std::move(part));
  ordered.insert(ordered.end(), std::make_move_iterator(profiles.begin()),
                 std::make_move_iterator(profiles.end()));
  return ordered;
}

namespace {

// Servers' kernels of experts gather rows by the router's choice in the product itself, in whichever
// configuration somebody tuned for a layer: Triton's of SGLang on H100 reach 610 TFLOP/s for 16 experts of
// 5120 x 1024 and 235 for 16 of 5120 x 4096, which nobody tuned. Training has a gradient to find and
// multiplies rows that are sorted before: by grouped products of CUTLASS or by cuBLAS, one expert after the
// other (Transformer Engine, grouped_gemm, torch._grouped_mm). Those of TensorRT-LLM are CUTLASS' own.
constexpr std::string_view kServersAlone = kSglang, kGroupedOfLibraries = "trtllm-";
const std::array<std::string, 2> kGroupedKinds = {"grouped_gemm", "grouped_gemm_dgrad"};

bool is_named(const StackChoice& choice, const std::string& kind, std::string_view dtype) {
  return std::any_of(choice.exceptions.begin(), choice.exceptions.end(),
                     [&](const auto& other) { return other.kind == kind && other.dtype == dtype; });
}

}  // namespace

std::string kernels_for(const Scenario& scenario, const std::vector<Profile>& profiles) {
  std::string kernels = scenario.kernels;
  if (scenario.kind != ScenarioKind::kTraining || !kernels.starts_with(kServersAlone)) return kernels;
  for (const Profile& profile : profiles)
    for (const ProfileTable& table : profile.tables)
      for (const std::string& kind : kGroupedKinds) {
        const bool fits =
            table.stack.starts_with(kGroupedOfLibraries) && !table.stored && has_kind(table, kind);
        if (fits && !is_named(stack_choice(kernels), kind, to_string(table.dtype)))
          kernels += fmt::format("; {}/{}={}", kind, to_string(table.dtype), table.stack);
      }
  return kernels;
}

}  // namespace moebius
