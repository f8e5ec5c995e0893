// The columns of a timeline file (.mtl), said once for writing and reading.
//
// A file is little-endian: FileHeader, then one Section for each string table and column, in the order of
// this header, then their data at the offsets that the sections give, each a multiple of 8, with zeros
// between. A string table is one blob: for each string its length in 32 bits, then its bytes. Another order,
// name or width is another version.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "workloads/schedule/timeline.h"

namespace moebius::mtl {

static_assert(std::endian::native == std::endian::little, "columns are copied as they stand in memory");

struct FileHeader {
  char magic[8];  // a line end in it shows files that were carried as text
  std::uint32_t version;
  std::uint32_t sections;
  std::uint64_t bytes;  // of the file
};
static_assert(sizeof(FileHeader) == 24);

inline constexpr char kMagic[8] = {'m', 'o', 'e', 'b', 't', 'l', '\r', '\n'};
inline constexpr std::uint32_t kVersion = 6;  // 6: what single ops wait for

struct Section {
  char name[24];            // zero-padded
  std::uint64_t row_bytes;  // 1 for string tables
  std::uint64_t rows;
  std::uint64_t offset;  // from the beginning of the file

  std::uint64_t bytes() const { return rows * row_bytes; }
};
static_assert(sizeof(Section) == 48);

// More rows than these are taken for damage, and are not written; loading copies everything but the spans.
inline constexpr std::uint64_t kMaxSpans = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kMaxTableRows = std::uint64_t{1} << 24;
inline constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 26;

// The member of a row that a column holds.
template <class Row, class T>
constexpr auto cell(T Row::*member) {
  return [member](auto& row) -> auto& {
    return row.*member;
  };
}
template <class T>
constexpr auto cell(T Shape::*member) {
  return [member](auto& row) -> auto& {
    return row.shape.*member;
  };
}

// Calls visit(name, field) for each column of a table; field(row) is a reference to the row's member.
template <class Visit>
void columns(const Span*, Visit&& visit) {
  visit("spans.sequence", cell(&Span::sequence));
  visit("spans.op", cell(&Span::op));
  visit("spans.rank_class", cell(&Span::rank_class));
  visit("spans.lane", cell(&Span::lane));
  visit("spans.origin", cell(&Span::origin));
  visit("spans.slowest", cell(&Span::slowest));
  visit("spans.error", cell(&Span::error));
  visit("spans.start", cell(&Span::start));
  visit("spans.end", cell(&Span::end));
  visit("spans.first_end", cell(&Span::first_end));
  visit("spans.mean_end", cell(&Span::mean_end));
  visit("spans.work_start", cell(&Span::work_start));
}

template <class Visit>
void columns(const OpRow*, Visit&& visit) {
  visit("ops.kind", cell(&OpRow::kind));
  visit("ops.dtype", cell(&OpRow::dtype));
  visit("ops.lane", cell(&OpRow::lane));
  visit("ops.phase", cell(&OpRow::phase));
  visit("ops.role", cell(&OpRow::role));
  visit("ops.group", cell(&OpRow::group));
  visit("ops.layer", cell(&OpRow::layer));
  visit("ops.second", cell(&OpRow::second));
  visit("ops.match", cell(&OpRow::match));
  visit("ops.fragment", cell(&OpRow::fragment));
  visit("ops.index", cell(&OpRow::index));
  visit("ops.first_dependency", cell(&OpRow::first_dependency));
  visit("ops.num_dependencies", cell(&OpRow::num_dependencies));
  visit("ops.m", cell(&Shape::m));
  visit("ops.n", cell(&Shape::n));
  visit("ops.k", cell(&Shape::k));
  visit("ops.groups", cell(&Shape::groups));
  visit("ops.heads", cell(&Shape::heads));
  visit("ops.kv_heads", cell(&Shape::kv_heads));
  visit("ops.head_dim", cell(&Shape::head_dim));
  visit("ops.v_dim", cell(&Shape::v_dim));
  visit("ops.kv", cell(&Shape::kv));
  visit("ops.window", cell(&Shape::window));
  visit("ops.flops", cell(&OpRow::flops));
  visit("ops.bytes", cell(&OpRow::bytes));
  visit("ops.payload", cell(&OpRow::payload));
}

template <class Visit>
void columns(const SubmissionRow*, Visit&& visit) {
  visit("submissions.sequence", cell(&SubmissionRow::sequence));
  visit("submissions.fragment", cell(&SubmissionRow::fragment));
  visit("submissions.rank_class", cell(&SubmissionRow::rank_class));
  visit("submissions.step", cell(&SubmissionRow::step));
  visit("submissions.microbatch", cell(&SubmissionRow::microbatch));
  visit("submissions.second", cell(&SubmissionRow::second_microbatch));
  visit("submissions.first_after", cell(&SubmissionRow::first_after));
  visit("submissions.num_after", cell(&SubmissionRow::num_after));
}

template <class Visit>
void columns(const FollowRow*, Visit&& visit) {
  visit("follows.sequence", cell(&FollowRow::sequence));
  visit("follows.op", cell(&FollowRow::op));
  visit("follows.before_seq", cell(&FollowRow::before_sequence));
  visit("follows.before_op", cell(&FollowRow::before_op));
}

template <class Visit>
void columns(const CounterSample*, Visit&& visit) {
  visit("samples.counter", cell(&CounterSample::counter));
  visit("samples.rank_class", cell(&CounterSample::rank_class));
  visit("samples.time", cell(&CounterSample::time));
  visit("samples.value", cell(&CounterSample::value));
}

template <class Row, class Field>
constexpr std::size_t width_of(const Field&) {
  return sizeof(std::remove_cvref_t<std::invoke_result_t<Field, Row&>>);
}

}  // namespace moebius::mtl
