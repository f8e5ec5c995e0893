// Cases of the ops of serving: sequences of different lengths on pages that are out of order.
#pragma once

#include <string>
#include <vector>

#include "tests/gpu/op_case.h"

namespace moebius {

// Prompts of 5, 40 and 9 tokens; pages of 8 out of 16.
inline BatchPtr prompts() {
  return std::make_shared<const Batch>(
      Batch{8, {{0, 5, 0, 5, {3}}, {2, 40, 0, 40, {9, 1, 0, 15, 4}}, {1, 9, 0, 9, {7, 2}}}});
}

// Parts of prompts: 5 tokens behind 12, all 9 of one, 3 behind 30; pages of 8 out of 16.
inline BatchPtr chunks() {
  return std::make_shared<const Batch>(
      Batch{8, {{0, 20, 12, 5, {3, 8, 5}}, {2, 9, 0, 9, {9, 1}}, {1, 40, 30, 3, {7, 2, 6, 0, 4}}}});
}

// A token each of sequences of 1, 90, 700 (two parts of keys) and 33 tokens, one of them padding; pages of 16
// out of 64.
inline BatchPtr decodes() {
  Batch batch{16, {{-1, 1, 0, 1, {0}}, {0, 88, 89, 1, {}}, {3, 690, 699, 1, {}}, {1, 30, 32, 1, {}}}};
  std::int32_t page = 63;
  for (BatchSequence& sequence : batch.sequences) {
    while (static_cast<std::int32_t>(sequence.pages.size()) * 16 < sequence.length())
      sequence.pages.push_back(page--);
  }
  return std::make_shared<const Batch>(std::move(batch));
}

inline OperandCase nothing(std::int64_t rows, std::int64_t columns, DType dtype = DType::kBf16) {
  return {rows, columns, dtype, {}};
}

inline std::vector<OpCase> paged_attentions() {
  struct Form {
    const char* name;
    int heads, kv_heads, head_dim, v_dim, window;
    bool shared;  // values are columns of the keys
  };
  std::vector<OpCase> cases;
  for (const Form f : {Form{"grouped queries", 4, 2, 16, 16, 0, false}, Form{"latent", 3, 1, 40, 32, 0, true},
                       Form{"window", 2, 1, 8, 8, 20, false}}) {
    const std::int64_t columns = f.kv_heads * (f.head_dim + (f.shared ? 0 : f.v_dim));
    for (const BatchPtr& batch : {decodes(), prompts()}) {
      const std::int64_t m = batch->rows();
      OpCase one{std::string("paged_attention, ") + f.name,
                 {.kind = OpKind::kPagedAttention,
                  .scale = 0.3f,
                  .shape = {.m = m,
                            .n = columns,
                            .groups = static_cast<std::int32_t>(batch->sequences.size()),
                            .heads = f.heads,
                            .kv_heads = f.kv_heads,
                            .head_dim = f.head_dim,
                            .v_dim = f.v_dim,
                            .kv = 200,
                            .window = f.window}},
                 {random_operand(91, m, f.heads * f.head_dim), random_operand(92, 64 * 16, columns)},
                 {nothing(m, f.heads * f.v_dim)}};
      one.batch = batch;
      cases.push_back(one);
    }
  }
  return cases;
}

// An indexer's scores over the last 8 of 24 columns of a cache, the keys of them, and attention over those.
inline std::vector<OpCase> sparse_attentions() {
  constexpr int kLatent = 12, kValues = 8, kHeads = 3, kTop = 7;
  std::vector<OpCase> cases;
  for (const BatchPtr& batch : {decodes(), prompts()}) {
    const std::int64_t m = batch->rows(), longest = batch->longest();
    const auto sequences = static_cast<std::int32_t>(batch->sequences.size());
    const OperandCase cache = random_operand(111, 64 * 16, 24);
    cases.push_back(
        {"index_scores",
         {.kind = OpKind::kIndexScores,
          .shape = {.m = m, .n = longest, .groups = sequences, .heads = 4, .head_dim = 8, .kv = 20}},
         {random_operand(112, m, 32), cache, random_operand(113, m, 4)},
         {nothing(m, longest, DType::kFp32)}});
    cases.back().batch = batch;
    OperandCase scores = random_operand(114, m, longest);
    scores.dtype = DType::kFp32;
    for (std::size_t i = 0; i < scores.values.size(); i += 3) scores.values[i] = i % 2 == 0 ? 0.0F : -0.0F;
    cases.push_back({"top_keys",
                     {.kind = OpKind::kTopKeys,
                      .shape = {.m = m, .n = longest, .k = kTop, .groups = sequences, .kv = 20}},
                     {scores},
                     {nothing(m, kTop, DType::kInt32)}});
    cases.back().batch = batch;
    OperandCase chosen{m, kTop, DType::kInt32, {}};
    for (const std::int32_t position : batch->positions())
      for (int i = 0; i < kTop; ++i)
        chosen.values.push_back(i <= position ? static_cast<float>(position < kTop ? i : position * i / kTop)
                                              : -1.0F);
    cases.push_back({"paged_attention over chosen keys",
                     {.kind = OpKind::kPagedAttention,
                      .scale = 0.3f,
                      .shape = {.m = m,
                                .n = kLatent,
                                .k = kTop,
                                .groups = sequences,
                                .heads = kHeads,
                                .kv_heads = 1,
                                .head_dim = kLatent,
                                .v_dim = kValues,
                                .kv = 20}},
                     {random_operand(115, m, kHeads * kLatent), cache, chosen},
                     {nothing(m, kHeads * kValues)}});
    cases.back().batch = batch;
  }
  return cases;
}

// Ops of training that read their rows' places from a batch.
inline std::vector<OpCase> known_ops_of_batches() {
  const std::int64_t m = prompts()->rows();
  std::vector<OpCase> cases;
  cases.push_back(
      {"rotary of a batch",
       {.kind = OpKind::kRotary, .shape = {.m = 4, .n = 24, .groups = 4, .heads = 2, .head_dim = 8}},
       {random_operand(93, 4, 24)},
       {nothing(4, 24)}});
  cases.back().batch = decodes();
  cases.push_back(
      {"attention of a batch",
       {.kind = OpKind::kAttention,
        .shape = {.m = m, .groups = 3, .heads = 4, .kv_heads = 2, .head_dim = 16, .v_dim = 16, .kv = 18}},
       {random_operand(94, m, 64), random_operand(95, m, 32), random_operand(96, m, 32)},
       {nothing(m, 64), nothing(m, 4, DType::kFp32)}});
  cases.back().batch = prompts();
  // Chunks of training that the end of a sequence cuts off: 20 and 12 tokens twice, which are not the mean.
  const BatchPtr cut = std::make_shared<const Batch>(
      Batch{0, {{0, 32, 0, 20, {}}, {0, 32, 0, 12, {}}, {1, 32, 0, 20, {}}, {1, 32, 0, 12, {}}}});
  const Shape shape{
      .m = 64, .groups = 4, .heads = 4, .kv_heads = 2, .head_dim = 16, .v_dim = 16, .kv = 16};
  OpCase forward{"attention of cut chunks",
                 {.kind = OpKind::kAttention, .shape = shape},
                 {random_operand(140, 64, 64), random_operand(141, 64, 32), random_operand(142, 64, 32)},
                 {nothing(64, 64), nothing(64, 4, DType::kFp32)}};
  forward.batch = cut;
  const OpResults results = execute_both(forward);
  OpCase back{"attention_grad of cut chunks", {.kind = OpKind::kAttentionGrad, .shape = shape}, {}, {}};
  back.inputs = {random_operand(143, 64, 64),
                 forward.inputs[0],
                 forward.inputs[1],
                 forward.inputs[2],
                 {64, 64, DType::kBf16, results.host[0]},
                 {64, 4, DType::kFp32, results.host[1]}};
  back.outputs = {nothing(64, 64), nothing(64, 32), nothing(64, 32)};
  back.batch = cut;
  cases.push_back(forward);
  cases.push_back(back);
  const std::int64_t keys = 17 + 9 + 33;
  cases.push_back(
      {"attention of parts of prompts",
       {.kind = OpKind::kAttention,
        .shape = {.m = 17, .groups = 3, .heads = 4, .kv_heads = 2, .head_dim = 16, .v_dim = 16, .kv = 20}},
       {random_operand(106, 17, 64), random_operand(107, keys, 32), random_operand(108, keys, 32)},
       {nothing(17, 64), nothing(17, 4, DType::kFp32)}});
  cases.back().batch = chunks();
  OperandCase generated{4, 12, DType::kInt32, std::vector<float>(48)};
  for (int i = 0; i < 48; ++i) generated.values[i] = static_cast<float>(100 + i);
  for (const BatchPtr& batch : {decodes(), prompts()}) {
    cases.push_back({"input of a batch",
                     {.kind = OpKind::kInput, .shape = {.m = batch->rows(), .n = 500, .groups = 3}},
                     {generated},
                     {nothing(batch->rows(), 1, DType::kInt32)}});
    cases.back().batch = batch;
  }
  return cases;
}

inline std::vector<OpCase> batch_cases() {
  std::vector<OpCase> cases = paged_attentions();
  for (const OpCase& one : sparse_attentions()) cases.push_back(one);
  for (const OpCase& one : known_ops_of_batches()) cases.push_back(one);
  const std::int64_t m = prompts()->rows();
  const auto add = [&](const BatchPtr& batch, OpCase one) {
    one.batch = batch;
    cases.push_back(std::move(one));
  };
  add(prompts(), {"cache_append",
                  {.kind = OpKind::kCacheAppend, .shape = {.m = m, .n = 20}},
                  {random_operand(97, m, 13), random_operand(98, m, 7)},
                  {random_operand(99, 16 * 8, 20)}});
  add(chunks(), {"cache_append read back",
                 {.kind = OpKind::kCacheAppend, .shape = {.m = 17 + 9 + 33, .n = 20, .k = 1}},
                 {random_operand(109, 16 * 8, 20)},
                 {nothing(17 + 9 + 33, 13), nothing(17 + 9 + 33, 7)}});
  // What is kept of sequences in rows out of order, of some that begin and some that go on.
  const auto numbered = [](const BatchPtr& batch) {
    Batch with = *batch;
    for (BatchSequence& sequence : with.sequences) sequence.state = (sequence.request + 4) % 5;
    return std::make_shared<const Batch>(std::move(with));
  };
  for (const BatchPtr& batch : {numbered(prompts()), numbered(chunks()), numbered(decodes())}) {
    const std::int64_t rows = batch->rows();
    const auto sequences = static_cast<std::int32_t>(batch->sequences.size());
    add(batch, {"convolution",
                {.kind = OpKind::kConvolution, .shape = {.m = rows, .n = 18, .k = 4, .groups = sequences}},
                {random_operand(120, rows, 18), random_operand(121, 18, 4)},
                {nothing(rows, 18), random_operand(122, 5, 3 * 18)}});
    add(batch, {"delta_rule",
                {.kind = OpKind::kDeltaRule,
                 .shape = {.m = rows,
                           .n = 2 * 2 * 8 + 4 * 6,
                           .groups = sequences,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 8,
                           .v_dim = 6}},
                {random_operand(123, rows, 2 * 2 * 8 + 4 * 6), random_operand(124, rows, 8),
                 random_operand(125, 2, 4)},
                {nothing(rows, 4 * 6), random_operand(126, 5, 4 * 8 * 6, DType::kFp32)}});
    add(batch, {"cache_append of a row for each sequence",
                {.kind = OpKind::kCacheAppend, .shape = {.m = sequences, .n = 20, .heads = 1}},
                {random_operand(127, sequences, 20)},
                {random_operand(128, 5, 20)}});
    add(batch, {"cache_append read back by sequences",
                {.kind = OpKind::kCacheAppend, .shape = {.m = sequences, .n = 20, .k = 1, .heads = 1}},
                {random_operand(129, 5, 20)},
                {nothing(sequences, 20)}});
  }
  add(nullptr, {"norm of heads with a gate",
                {.kind = OpKind::kNorm, .shape = {.m = 7 * 3, .n = 10, .k = 1}},
                {random_operand(130, 7, 30), random_operand(131, 1, 10), random_operand(132, 7, 30)},
                {nothing(7, 30)}});
  add(nullptr, {"activation by the sigmoid of a gate",
                {.kind = OpKind::kActivation, .shape = {.m = 7, .n = 30, .k = 3}},
                {random_operand(133, 7, 30), random_operand(134, 7, 30)},
                {nothing(7, 30)}});
  add(prompts(), {"last_rows",
                  {.kind = OpKind::kLastRows, .shape = {.m = m, .n = 30, .groups = 3}},
                  {random_operand(100, m, 30)},
                  {nothing(3, 30)}});
  OperandCase best{
      2 * 4, 2, DType::kFp32, {1, 5, 2, 6, 3, 7, 4, 8, 2, 65, 2, 66, 1, 67, 5, 68}};  // of two shards
  add(decodes(), {"next_token",
                  {.kind = OpKind::kNextToken, .shape = {.m = 4, .n = 12, .groups = 2}},
                  {best},
                  {{4, 12, DType::kInt32, std::vector<float>(48, 9)}}});
  const Shape maps{.m = 5, .n = 32, .k = 4, .heads = 3, .head_dim = 12, .v_dim = 6};
  add(nullptr, {"absorb_queries",
                {.kind = OpKind::kAbsorbQueries, .shape = maps},
                {random_operand(101, 5, 36), random_operand(102, 3 * 14, 32)},
                {nothing(5, 3 * 36)}});
  add(nullptr, {"absorbed_values of a map in FP8",
                {.kind = OpKind::kAbsorbedValues, .shape = maps},
                {random_operand(103, 5, 96), random_operand(104, 3 * 14, 32, DType::kFp8)},
                {nothing(5, 18)}});
  const Shape some{.m = 3, .n = 32, .k = 4, .groups = 1, .heads = 3, .head_dim = 12, .v_dim = 6, .kv = 2};
  add(nullptr, {"absorb_queries of some rows",
                {.kind = OpKind::kAbsorbQueries, .shape = some},
                {random_operand(110, 7, 36), random_operand(111, 3 * 14, 32)},
                {nothing(3, 3 * 36)}});
  add(nullptr, {"absorbed_values into some rows",
                {.kind = OpKind::kAbsorbedValues, .shape = some},
                {random_operand(112, 3, 96), random_operand(113, 3 * 14, 32)},
                {random_operand(114, 7, 18)}});
  for (const DType dtype : {DType::kBf16, DType::kFp8}) {
    const std::int64_t rows = 130, columns = 140;  // of one expert: blocks of scales end within
    OpCase one{
        "place_experts",
        {.kind = OpKind::kPlaceExperts, .dtype = dtype, .shape = {.m = 2 * rows, .n = columns, .groups = 2}},
        {random_weight(115, 3 * rows, columns, dtype, 1, 3)},
        {random_weight(116, 4 * rows, columns, dtype, 1, 4)}};
    one.transfer = std::make_shared<const ExpertTransfer>(ExpertTransfer{
        {{.number = -1, .arrivals = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}}, .placings = {{0, 2, 0}, {0, 0, 3}}}}});
    cases.push_back(std::move(one));
  }
  OperandCase logits = random_operand(105, 6, 300, DType::kFp32);
  logits.values[10] = logits.values[200] = 50;  // equals: the first
  add(nullptr, {"greedy_sample",
                {.kind = OpKind::kGreedySample, .shape = {.m = 6, .n = 300}},
                {logits},
                {nothing(6, 2, DType::kFp32)}});
  return cases;
}

}  // namespace moebius
