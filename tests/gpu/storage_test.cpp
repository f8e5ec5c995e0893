// Formats, scales and lists as kernels compute them, against the host's rounding. None of it needs a device.
#include <cmath>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "real/cuda/device_route.h"
#include "real/cuda/kernels.h"
#include "real/cuda/storage.h"
#include "real/rounding.h"
#include "tests/gpu/op_case.h"

namespace moebius::cuda {

TEST_CASE("every e4m3 code comes back from its own value") {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) {
      CHECK(std::isnan(from_e4m3(static_cast<std::uint8_t>(code))));
    } else {
      CHECK(to_e4m3(from_e4m3(static_cast<std::uint8_t>(code))) == code);
    }
  }
  CHECK(from_e4m3(0x7e) == 448);
  CHECK(from_e4m3(0x08) == 0x1p-6f);
  CHECK(from_e4m3(0x01) == 0x1p-9f);
}

TEST_CASE("numbers become the e4m3 value that the host rounds to: neighbours, ties, subnormals, overflow") {
  for (int code = 0; code < 0x7e; ++code) {
    const double low = from_e4m3(static_cast<std::uint8_t>(code)),
                 high = from_e4m3(static_cast<std::uint8_t>(code + 1));
    for (const double share : {0.0, 0.25, 0.499999, 0.5, 0.500001, 0.75}) {
      const double value = low + share * (high - low);
      CHECK(from_e4m3(to_e4m3(value)) == round_fp8_e4m3(value));
      CHECK(from_e4m3(to_e4m3(-value)) == round_fp8_e4m3(-value));
    }
  }
  CHECK(from_e4m3(to_e4m3(1e6)) == 448);
  CHECK(from_e4m3(to_e4m3(449)) == round_fp8_e4m3(449));
  CHECK(std::isnan(from_e4m3(to_e4m3(NAN))));
}

TEST_CASE("numbers become the BF16 value that the host rounds to") {
  for (const float value : random_numbers(3, 4000)) {
    for (const float scaled : {value, value * 1e-30f, value * 1e30f})
      CHECK(from_bf16(to_bf16(scaled)) == static_cast<float>(round_bf16(scaled)));
  }
  CHECK(from_bf16(to_bf16(1 + 0x1p-8f)) == 1);  // a tie, to even
  CHECK(from_bf16(to_bf16(1 + 3 * 0x1p-8f)) == 1 + 0x1p-6f);
  CHECK(std::isinf(from_bf16(to_bf16(INFINITY))));
  CHECK(std::isnan(from_bf16(to_bf16(float_of_bits(0x7f800001u)))));
}

TEST_CASE("scales stand where their blocks do, also for some rows of a matrix") {
  const Operand rows{.rows = 300, .columns = 200, .storage = Storage::kFp8Rows};
  CHECK(num_scales(rows) == 600);
  CHECK(scale_index(rows, 7, 127) == 14);
  CHECK(scale_index(rows, 7, 128) == 15);
  CHECK(scale_index(rows.some_rows(5, 10), 2, 199) == 15);
  Operand columns = rows;
  columns.storage = Storage::kFp8Columns;
  CHECK(num_scales(columns) == 600);  // ceil(300/128) = 3 by 200
  CHECK(scale_index(columns, 127, 3) == 3);
  CHECK(scale_index(columns, 128, 3) == 203);
  CHECK(scale_index(columns.some_rows(100, 50), 27, 3) == 3);  // row 127 of the whole
  CHECK(scale_index(columns.some_rows(100, 50), 28, 3) == 203);
  Operand weights =
      rows;  // of two experts, 150 rows each: two lines of blocks each, rows of scales padded to 4
  weights.storage = Storage::kFp8Blocks;
  weights.period = 150;
  CHECK(num_scales(weights) == 2 * 2 * 4);
  CHECK(scale_index(weights, 127, 128) == 1);
  CHECK(scale_index(weights, 128, 128) == 5);
  CHECK(scale_index(weights.some_rows(150, 150), 0, 0) == 8);
}

TEST_CASE("queries see the keys that the host lets them see, and keys stand in chunks of the context group") {
  const Attention a{.sequences = 2, .queries = 3, .keys = 9, .window = 4, .chunk = 3};
  CHECK(a.last_seen(0) == 7);   // query 0 stands at position 6
  CHECK(a.first_seen(0) == 3);  // 6, 5, 4, 3
  CHECK(a.last_seen(2) == 9);
  const Attention early{.queries = 3, .keys = 3, .window = 4};
  CHECK(early.first_seen(2) == 0);
  // Chunk by chunk, in each sequence by sequence: every gathered row once.
  std::set<std::int64_t> rows;
  for (std::int64_t sequence = 0; sequence < 2; ++sequence)
    for (std::int64_t key = 0; key < 9; ++key) rows.insert(a.key_row(sequence, key));
  CHECK(rows.size() == 18);
  CHECK(a.key_row(0, 4) == 7);  // chunk 1 of sequence 0 begins at row 6
  CHECK(a.key_row(1, 0) == 3);
  CHECK(a.key_row(1, 8) == 17);
}

TEST_CASE("the lists of a route say the same in both directions") {
  constexpr int kRanks = 3, kActive = 2;
  const Route route(RouteSpec{.seed = 5,
                              .popularity = {.kind = PopularityKind::kZipf, .exponent = 1},
                              .ranks = kRanks,
                              .ranks_per_node = kRanks,
                              .experts = 6,
                              .active = kActive,
                              .tokens = 7});
  for (int member = 0; member < kRanks; ++member) {
    const RoutePlan plan = plan_route(route, member);
    const RouteLists lists = route_lists(plan);
    const auto at = [&](std::int64_t list, std::int64_t i) { return lists.values[list + i]; };
    std::int64_t first = 0, found = 0;
    for (int to = 0; to < kRanks; ++to) {
      for (std::size_t i = 0; i < plan.sent[to].size(); ++i)
        CHECK(at(lists.position, to * 7 + at(lists.sent, first + i)) == static_cast<std::int32_t>(i));
      first += static_cast<std::int64_t>(plan.sent[to].size());
    }
    for (std::int64_t i = 0; i < kRanks * 7; ++i) found += at(lists.position, i) >= 0;
    CHECK(found == first);  // everything else goes nowhere
    for (std::size_t copy = 0; copy < plan.copy_row.size(); ++copy) {
      const std::int64_t slot = at(lists.copy_row, copy) * kActive + at(lists.copy_slot, copy);
      CHECK(at(lists.slot_copy, slot) == static_cast<std::int32_t>(copy));
    }
    std::multiset<std::int32_t> by_row, by_slot;
    for (std::int64_t i = 0; i < plan.received * kActive; ++i) {
      if (at(lists.row_copies, i) >= 0) by_row.insert(at(lists.row_copies, i));
      if (at(lists.slot_copy, i) >= 0) by_slot.insert(at(lists.slot_copy, i));
      const bool second = i % kActive > 0 && at(lists.row_copies, i) >= 0;
      if (second) CHECK(at(lists.row_copies, i - 1) < at(lists.row_copies, i));
    }
    CHECK(by_row == by_slot);
    CHECK(by_row.size() == plan.copy_row.size());
  }
}

}  // namespace moebius::cuda
