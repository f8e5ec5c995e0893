#include "workloads/calibration/device/case_plan.h"

#include <fmt/format.h>

#include <numeric>

#include "workloads/cost/measured_table.h"
#include "workloads/routing/random_stream.h"

namespace moebius {
namespace {

using Key = ProfileKey;
using Numbers = std::vector<double>;

constexpr double kUnlimited = 1e9;

ProfileTable family_of(OpKind kind, DType dtype, std::vector<Key> site, const std::vector<Key>& axes) {
  ProfileTable table;
  table.kinds = {std::string(to_string(kind))};
  table.dtype = dtype;
  table.name = fmt::format("{} {}", table.kinds.front(), to_string(dtype));
  table.site_keys = std::move(site);
  for (const Key axis : axes) table.axes.push_back({axis, {}});
  return table;
}

// What kinds need beside the keys of their tables.
Shape completed(OpKind kind, Shape shape) {
  switch (kind) {
    case OpKind::kInput:
      shape.k = 1;
      shape.groups = 1;
      break;
    case OpKind::kGate:
    case OpKind::kGateGrad:  // sigmoid scores
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kCrossEntropy:
      shape.groups = 1;
      break;
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
      shape.n = shape.heads * (shape.head_dim - shape.k + shape.v_dim);
      break;
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
      shape.k = 2;  // weights that a token brings
      break;
    case OpKind::kAdam:
      shape.n = 1;
      break;
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kNorm:
    case OpKind::kNormGrad:
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
    case OpKind::kAdd:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
    case OpKind::kCrossEntropyStats:
    case OpKind::kDispatch:
    case OpKind::kCombine:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
      break;
  }
  return shape;
}

std::string text_of(const ProfileTable& table, const DeviceCase& one) {
  std::string text = table.name;
  for (std::size_t i = 0; i < one.site.size(); ++i)
    text += fmt::format(" {} {}", to_string(table.site_keys[i]), one.site[i]);
  for (std::size_t i = 0; i < one.at.size(); ++i)
    text += fmt::format(" {} {}", to_string(table.axes[i].key), one.at[i]);
  return one.rows.empty() ? text : text + fmt::format(" rows {}", fmt::join(one.rows, "+"));
}

// A third of the experts' even load for most of them, the rest for the first ones: what a skewed router does.
std::vector<std::int32_t> skewed_rows(int groups, double mean) {
  std::vector<std::int32_t> rows;
  double weights = 0;
  for (int i = 0; i < groups; ++i) weights += 1.0 / (i + 1);
  for (int i = 0; i < groups; ++i)
    rows.push_back(static_cast<std::int32_t>(mean * groups / weights / (i + 1) + 0.5));
  return rows;
}

class PlanMaker {
 public:
  // All sites at all points. Every other one comes later.
  void add(ProfileTable table, const std::vector<Numbers>& sites, const std::vector<Numbers>& axes) {
    const OpKind kind = *kind_of(table.kinds.front());
    std::size_t grid = 1;
    for (const Numbers& axis : axes) grid *= axis.size();
    for (std::size_t s = 0; s < sites.size(); ++s)
      for (std::size_t point = 0; point < grid; ++point) {
        DeviceCase one{.family = static_cast<int>(plan_.families.size()), .site = sites[s]};
        one.rank = static_cast<int>(s % 2);
        std::size_t rest = point;
        for (const Numbers& axis : axes) {
          one.at.push_back(axis[rest % axis.size()]);
          one.rank += static_cast<int>(rest % axis.size() % 2);
          rest /= axis.size();
        }
        one.shape = completed(kind, shape_in(table, kind, one.site, one.at));
        add_case(table, std::move(one));
      }
    plan_.families.push_back(std::move(table));
  }

  // Uneven loads at the sites of the family added last.
  void add_skewed(const std::vector<Numbers>& sites, const Numbers& means) {
    const ProfileTable& table = plan_.families.back();
    for (const Numbers& site : sites) {
      const auto groups = static_cast<int>(site.front());
      if (groups < 2) continue;
      for (const double mean : means) {
        DeviceCase one{.family = static_cast<int>(plan_.families.size()) - 1, .site = site, .at = {mean}};
        one.rows = skewed_rows(groups, mean);
        one.shape = shape_in(table, *kind_of(table.kinds.front()), site, one.at);
        one.shape = loaded_rows(*kind_of(table.kinds.front()), one);
        one.rank = 1;
        add_case(table, std::move(one));
      }
    }
  }

  CasePlan finish() { return std::move(plan_); }

 private:
  static Shape loaded_rows(OpKind kind, const DeviceCase& one) {
    Shape shape = one.shape;
    const auto all = std::accumulate(one.rows.begin(), one.rows.end(), std::int64_t{0});
    (kind == OpKind::kGroupedGemmWgrad ? shape.k : shape.m) = all;
    return shape;
  }
  void add_case(const ProfileTable& table, DeviceCase one) {
    one.text = text_of(table, one);
    plan_.cases.push_back(std::move(one));
  }

  CasePlan plan_;
};

std::vector<Numbers> sites_of(const Numbers& widths) {
  std::vector<Numbers> sites;
  for (const double width : widths) sites.push_back({width});
  return sites;
}

// Every other element: of types and kinds that differ little from one that is measured in full.
template <class T>
std::vector<T> half(const std::vector<T>& all) {
  std::vector<T> some;
  for (std::size_t i = 0; i < all.size(); i += 2) some.push_back(all[i]);
  return some;
}

void add_products(PlanMaker& maker, const CaseSizes& sizes) {
  std::vector<Numbers> sites;
  for (const MatrixSize& matrix : sizes.matrices)
    sites.push_back({static_cast<double>(matrix.n), static_cast<double>(matrix.k)});
  for (const DType dtype : {DType::kBf16, DType::kFp8}) {
    const bool full = dtype == DType::kBf16;
    const Numbers& rows = sizes.rows;
    maker.add(family_of(OpKind::kGemm, dtype, {Key::kN, Key::kK}, {Key::kM}), sites, {rows});
    maker.add(family_of(OpKind::kGemmDgrad, dtype, {Key::kN, Key::kK}, {Key::kM}), full ? sites : half(sites),
              {half(rows)});
    maker.add(family_of(OpKind::kGemmWgrad, dtype, {Key::kM, Key::kN}, {Key::kRows}),
              full ? sites : half(sites), {half(rows)});
  }
}

void add_experts(PlanMaker& maker, const CaseSizes& sizes) {
  std::vector<Numbers> sites;
  for (const ExpertSize& size : sizes.experts)
    sites.push_back(
        {static_cast<double>(size.groups), static_cast<double>(size.n), static_cast<double>(size.k)});
  const Numbers& rows = sizes.expert_rows;
  const Numbers skewed = {rows[rows.size() / 2], rows[rows.size() - 2]};
  for (const DType dtype : {DType::kBf16, DType::kFp8})
    for (const OpKind kind : {OpKind::kGroupedGemm, OpKind::kGroupedGemmDgrad, OpKind::kGroupedGemmWgrad}) {
      const bool wgrad = kind == OpKind::kGroupedGemmWgrad;
      const std::vector<Key> keys = {Key::kGroups, wgrad ? Key::kM : Key::kN, wgrad ? Key::kN : Key::kK};
      maker.add(family_of(kind, dtype, keys, {Key::kRows}), sites,
                {kind == OpKind::kGroupedGemm ? rows : half(rows)});
      maker.add_skewed(sites, skewed);
    }
}

std::vector<Numbers> sites_of(const std::vector<HeadSizes>& heads) {
  std::vector<Numbers> sites;
  for (const HeadSizes& h : heads)
    sites.push_back({static_cast<double>(h.heads), static_cast<double>(h.kv_heads),
                     static_cast<double>(h.head_dim), static_cast<double>(h.v_dim)});
  return sites;
}

void add_attention(PlanMaker& maker, const CaseSizes& sizes) {
  const std::vector<Key> heads = {Key::kHeads, Key::kKvHeads, Key::kHeadDim, Key::kVDim};
  const auto attention = [&](OpKind kind, const char* what, const std::vector<Key>& axes) {
    ProfileTable table = family_of(kind, DType::kBf16, heads, axes);
    table.name += what;
    table.where = {{Key::kWindow, 0, 0}};
    return table;
  };
  const std::vector<Numbers> prefill = {sizes.sequences, sizes.queries};
  ProfileTable forward = attention(OpKind::kAttention, " prefill", {Key::kGroups, Key::kQueries});
  forward.where.push_back({Key::kQueries, 2, kUnlimited});
  maker.add(forward, sites_of(sizes.heads), prefill);
  maker.add(attention(OpKind::kAttentionGrad, "", {Key::kGroups, Key::kQueries}), sites_of(sizes.heads),
            prefill);
  ProfileTable decode = attention(OpKind::kAttention, " decode", {Key::kGroups, Key::kKv});
  decode.where.push_back({Key::kQueries, 1, 1});
  ProfileTable latent = decode;
  decode.where.push_back({Key::kVDim, 0, 256});
  maker.add(decode, sites_of(sizes.heads), {sizes.decodes, sizes.keys});
  if (sizes.latent.empty()) return;
  latent.name = "attention bf16 decode, latent";
  latent.where.push_back({Key::kVDim, 257, kUnlimited});
  maker.add(latent, sites_of(sizes.latent), {sizes.decodes, sizes.keys});
}

// Rows of so many columns.
void add_streams(PlanMaker& maker, const CaseSizes& sizes) {
  const std::vector<Numbers> sites = sites_of(sizes.widths);
  const auto add = [&](OpKind kind, DType dtype) {
    const bool shorter = dtype == DType::kFp8;
    maker.add(family_of(kind, dtype, {Key::kN}, {Key::kM}), shorter ? half(sites) : sites,
              {sizes.stream_rows});
  };
  for (const OpKind kind :
       {OpKind::kNorm, OpKind::kNormGrad, OpKind::kAdd, OpKind::kSplit, OpKind::kConcat, OpKind::kPermute,
        OpKind::kPermuteGrad, OpKind::kUnpermute, OpKind::kUnpermuteGrad})
    add(kind, DType::kBf16);
  for (const OpKind kind : {OpKind::kNorm, OpKind::kNormGrad, OpKind::kQuantise, OpKind::kTransposeQuantise,
                            OpKind::kPermute, OpKind::kUnpermuteGrad})
    add(kind, DType::kFp8);
  for (const OpKind kind : {OpKind::kActivation, OpKind::kActivationGrad})
    for (const DType dtype : {DType::kBf16, DType::kFp8}) {
      ProfileTable table = family_of(kind, dtype, {Key::kN}, {Key::kM});
      table.where = {{Key::kK, 2, 2}};  // gated
      maker.add(table, half(sites), {sizes.stream_rows});
    }
}

void add_heads_streams(PlanMaker& maker, const CaseSizes& sizes) {
  std::vector<Numbers> rotated, latent;
  for (const HeadSizes& h : sizes.heads) {
    const double rope = h.head_dim > h.v_dim ? h.head_dim - h.v_dim : h.head_dim;
    rotated.push_back({static_cast<double>(h.heads * h.head_dim), static_cast<double>(h.heads), rope});
    if (h.head_dim > h.v_dim)
      latent.push_back({static_cast<double>(h.heads), static_cast<double>(h.head_dim),
                        static_cast<double>(h.v_dim), rope});
  }
  rotated.push_back({8, 1, 8});    // the one rotary key of narrow models
  rotated.push_back({64, 1, 64});  // and of wide ones
  for (const OpKind kind : {OpKind::kRotary, OpKind::kRotaryGrad})
    maker.add(family_of(kind, DType::kBf16, {Key::kN, Key::kHeads, Key::kHeadDim}, {Key::kM}), rotated,
              {sizes.stream_rows});
  for (const OpKind kind : {OpKind::kMlaKeys, OpKind::kMlaKeysGrad})
    maker.add(family_of(kind, DType::kBf16, {Key::kHeads, Key::kHeadDim, Key::kVDim, Key::kK}, {Key::kM}),
              latent, {sizes.stream_rows});
}

void add_tokens(PlanMaker& maker, const CaseSizes& sizes) {
  std::vector<Numbers> tables;
  for (const double vocabulary : sizes.vocabularies)
    for (const double width : half(sizes.widths)) tables.push_back({vocabulary, width});
  maker.add(family_of(OpKind::kInput, DType::kBf16, {Key::kN}, {Key::kM}), sites_of(sizes.vocabularies),
            {half(sizes.stream_rows)});
  for (const OpKind kind : {OpKind::kEmbedding, OpKind::kEmbeddingGrad})
    maker.add(family_of(kind, DType::kBf16, {Key::kN, Key::kK}, {Key::kM}), tables,
              {half(sizes.stream_rows)});
  for (const OpKind kind : {OpKind::kCrossEntropyStats, OpKind::kCrossEntropy})
    maker.add(family_of(kind, DType::kBf16, {Key::kN}, {Key::kM}), sites_of(sizes.vocabularies),
              {sizes.stream_rows});
  for (const OpKind kind : {OpKind::kGate, OpKind::kGateGrad})
    maker.add(family_of(kind, DType::kBf16, {Key::kN, Key::kK}, {Key::kM}),
              {{4, 1}, {8, 2}, {64, 6}, {256, 8}}, {sizes.stream_rows});
  for (const DType dtype : {DType::kFp32, DType::kBf16})
    maker.add(family_of(OpKind::kAdam, dtype, {}, {Key::kM}), {Numbers{}}, {sizes.parameters});
}

}  // namespace

CostQuery CasePlan::query(const DeviceCase& one, int cores) const {
  const ProfileTable& table = families[static_cast<std::size_t>(one.family)];
  return {.kind = *kind_of(table.kinds.front()),
          .shape = one.shape,
          .dtype = table.dtype,
          .cores = cores,
          .rows = one.rows};
}

std::uint64_t CasePlan::hash() const {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const DeviceCase& one : cases)
    for (const char c : one.text + '\n') hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

CasePlan make_case_plan(const CaseSizes& sizes) {
  PlanMaker maker;
  add_products(maker, sizes);
  add_experts(maker, sizes);
  add_attention(maker, sizes);
  add_streams(maker, sizes);
  add_heads_streams(maker, sizes);
  add_tokens(maker, sizes);
  return maker.finish();
}

}  // namespace moebius
