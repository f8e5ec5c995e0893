#include "workloads/calibration/device/case_plan.h"

#include "models/layer_math.h"
#include "workloads/calibration/device/plan_maker.h"
#include "workloads/cost/measured_table.h"

namespace moebius {
namespace {

using Key = ProfileKey;

constexpr double kUnlimited = 1e9;

void add_products(PlanMaker& maker, const CaseSizes& sizes) {
  for (const DType dtype : {DType::kBf16, DType::kFp8}) {
    for (const OpKind kind : {OpKind::kGemm, OpKind::kGemmDgrad})
      maker.add(family_of(kind, dtype, {}, {Key::kM, Key::kN, Key::kK}), {}, {sizes.m, sizes.n, sizes.k});
    // dW[m, n]: both are sizes of a weight matrix, and the tokens are summed over.
    maker.add(family_of(OpKind::kGemmWgrad, dtype, {}, {Key::kRows, Key::kM, Key::kN}), {},
              {sizes.m, sizes.n, sizes.k});
  }
}

void add_experts(PlanMaker& maker, const CaseSizes& sizes) {
  std::vector<Numbers> groups;
  for (const double count : sizes.experts) groups.push_back({count});
  const Numbers &rows = sizes.expert_rows, &n = sizes.expert_n, &k = sizes.expert_k;
  const double many = rows[rows.size() - 2], middle = rows[rows.size() / 2];
  for (const DType dtype : {DType::kBf16, DType::kFp8})
    for (const OpKind kind : {OpKind::kGroupedGemm, OpKind::kGroupedGemmDgrad, OpKind::kGroupedGemmWgrad}) {
      const bool wgrad = kind == OpKind::kGroupedGemmWgrad;
      maker.add(family_of(kind, dtype, {Key::kGroups},
                          {Key::kRows, wgrad ? Key::kM : Key::kN, wgrad ? Key::kN : Key::kK}),
                groups, {rows, n, k});
      for (const double count : sizes.experts)
        if (count > 1)
          maker.add_uneven(static_cast<int>(count), {{middle, n[n.size() / 2], k[k.size() / 2]},
                                                     {many, n[n.size() / 2], k[k.size() / 2]}});
    }
}

std::vector<Numbers> sites_of(const std::vector<HeadSizes>& heads) {
  std::vector<Numbers> sites;
  for (const HeadSizes& h : heads)
    sites.push_back({static_cast<double>(h.heads), static_cast<double>(h.kv_heads),
                     static_cast<double>(h.head_dim), static_cast<double>(h.v_dim)});
  return sites;
}

void add_prefill(PlanMaker& maker, const CaseSizes& sizes, OpKind kind) {
  ProfileTable table = family_of(kind, DType::kBf16, {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim},
                                 {Key::kGroups, Key::kQueries});
  table.where = {{Key::kWindow, 0, 0}};
  if (kind == OpKind::kAttention) {
    table.name += " prefill";
    table.where.push_back({Key::kQueries, 2, kUnlimited});
  }
  maker.add(table, sites_of(sizes.heads), {sizes.sequences, sizes.queries});
  const Numbers& queries = sizes.queries;
  maker.add_tests("other heads", sites_of(sizes.other_heads),
                  {{1, queries[queries.size() / 2]}, {1, queries.back()}});
}

void add_decode(PlanMaker& maker, const CaseSizes& sizes) {
  ProfileTable table =
      family_of(OpKind::kAttention, DType::kBf16, {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim},
                {Key::kGroups, Key::kKv});
  ProfileTable latent = table;
  table.name += " decode";
  table.where = {{Key::kWindow, 0, 0}, {Key::kQueries, 1, 1}, {Key::kVDim, 0, 256}};
  maker.add(table, sites_of(sizes.heads), {sizes.decodes, sizes.keys});
  if (sizes.latent.empty()) return;
  latent.name += " decode, latent";
  latent.where = {{Key::kWindow, 0, 0}, {Key::kQueries, 1, 1}, {Key::kVDim, 257, kUnlimited}};
  maker.add(latent, sites_of(sizes.latent), {sizes.decodes, sizes.keys});
}

// Rows of so many columns.
void add_streams(PlanMaker& maker, const CaseSizes& sizes) {
  const auto add = [&](OpKind kind, DType dtype) {
    ProfileTable table = family_of(kind, dtype, {}, {Key::kM, Key::kN});
    const bool gated = kind == OpKind::kActivation || kind == OpKind::kActivationGrad;
    if (gated) table.where = {{Key::kK, 2, 2}};
    maker.add(table, {}, {sizes.stream_rows, sizes.widths});
  };
  for (const OpKind kind : {OpKind::kNorm, OpKind::kNormGrad, OpKind::kActivation, OpKind::kActivationGrad,
                            OpKind::kAdd, OpKind::kSplit, OpKind::kConcat, OpKind::kPermute,
                            OpKind::kPermuteGrad, OpKind::kUnpermute, OpKind::kUnpermuteGrad})
    add(kind, DType::kBf16);
  for (const OpKind kind : {OpKind::kNorm, OpKind::kNormGrad, OpKind::kActivation, OpKind::kActivationGrad,
                            OpKind::kPermute, OpKind::kUnpermuteGrad})
    add(kind, DType::kFp8);
  maker.add(family_of(OpKind::kLargest, DType::kBf16, {}, {Key::kM, Key::kN}), {},
            {sizes.stream_rows, sizes.widths});
  for (const OpKind kind : {OpKind::kQuantise, OpKind::kTransposeQuantise})
    maker.add(family_of(kind, DType::kFp8, {}, {Key::kM, Key::kN}), {}, {sizes.stream_rows, sizes.widths});
}

void add_streams_of_heads(PlanMaker& maker, const CaseSizes& sizes) {
  // One rotary key of latent attention, narrow and wide.
  std::vector<Numbers> rotated = {{8, 1, 8}, {64, 1, 64}}, latent;
  for (const HeadSizes& h : sizes.heads) {
    const double rope = h.head_dim > h.v_dim ? h.head_dim - h.v_dim : h.head_dim;
    const Numbers site = {static_cast<double>(h.heads) * h.head_dim, static_cast<double>(h.heads), rope};
    if (site != rotated.front()) rotated.push_back(site);
    if (h.head_dim > h.v_dim)
      latent.push_back({static_cast<double>(h.heads), static_cast<double>(h.head_dim),
                        static_cast<double>(h.v_dim), rope});
  }
  for (const OpKind kind : {OpKind::kRotary, OpKind::kRotaryGrad})
    maker.add(family_of(kind, DType::kBf16, {Key::kN, Key::kHeads, Key::kHeadDim}, {Key::kM}), rotated,
              {sizes.stream_rows});
  for (const OpKind kind : {OpKind::kMlaKeys, OpKind::kMlaKeysGrad})
    maker.add(family_of(kind, DType::kBf16, {Key::kHeads, Key::kHeadDim, Key::kVDim, Key::kK}, {Key::kM}),
              latent, {sizes.stream_rows});
}

// Updates that round weights to 8 bits, all or a share of them.
void add_rounding_update(PlanMaker& maker, const CaseSizes& sizes, DType dtype) {
  ProfileTable table = family_of(OpKind::kAdam, dtype, {}, {Key::kM, Key::kVDim});
  table.name += ", weights in 8 bits";
  table.where = {{Key::kVDim, 1, kShareOfUpdate}};
  maker.add(table, {}, {sizes.parameters, {kShareOfUpdate / 4, kShareOfUpdate}});
}

void add_tokens(PlanMaker& maker, const CaseSizes& sizes) {
  const Numbers &rows = sizes.stream_rows, &words = sizes.vocabularies;
  maker.add(family_of(OpKind::kInput, DType::kBf16, {}, {Key::kM, Key::kN}), {}, {rows, half(words)});
  for (const OpKind kind : {OpKind::kEmbedding, OpKind::kEmbeddingGrad})
    maker.add(family_of(kind, DType::kBf16, {}, {Key::kM, Key::kN, Key::kK}), {},
              {rows, half(words), half(sizes.widths)});
  for (const OpKind kind : {OpKind::kCrossEntropyStats, OpKind::kCrossEntropy})
    maker.add(family_of(kind, DType::kBf16, {}, {Key::kM, Key::kN}), {}, {rows, words});
  for (const OpKind kind : {OpKind::kGate, OpKind::kGateGrad})
    maker.add(family_of(kind, DType::kBf16, {Key::kK}, {Key::kM, Key::kN}), {{1}, {2}, {8}},
              {rows, {8, 64, 512}});
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    add_rounding_update(maker, sizes, dtype);
    for (const OpKind kind : {OpKind::kAdam, OpKind::kSumSquares})
      maker.add(family_of(kind, dtype, {}, {Key::kM}), {}, {sizes.parameters});
  }
}

void add_all(PlanMaker& maker, const CaseSizes& sizes) {
  add_products(maker, sizes);
  add_experts(maker, sizes);
  add_prefill(maker, sizes, OpKind::kAttention);
  add_prefill(maker, sizes, OpKind::kAttentionGrad);
  add_decode(maker, sizes);
  add_streams(maker, sizes);
  add_streams_of_heads(maker, sizes);
  add_tokens(maker, sizes);
  // Behind all others, whose drawn cases follow from how many families stand before them.
  maker.add(family_of(OpKind::kRowMeans, DType::kBf16, {}, {Key::kM, Key::kN}), {},
            {sizes.stream_rows, sizes.widths});
}

}  // namespace

CostQuery CasePlan::query(const DeviceCase& one, int cores) const {
  const ProfileTable& table = families[static_cast<std::size_t>(one.family)];
  return {.kind = *kind_of(table.kinds.front()),
          .shape = one.shape,
          .dtype = table.dtype,
          .cores = cores,
          .rows = one.rows,
          .hot = table.hot};
}

std::uint64_t CasePlan::hash() const {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const DeviceCase& one : cases)
    for (const char c : one.text + '\n') hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

CasePlan make_case_plan(const CaseSizes& sizes) {
  PlanMaker maker(sizes.most_elements);
  add_all(maker, sizes);
  if (sizes.hot_too) {
    maker.from_here_hot();
    add_all(maker, sizes);
  }
  return maker.finish();
}

}  // namespace moebius
