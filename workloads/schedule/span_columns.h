// A timeline file for those who look at many spans quickly or at few of them closely: opened without a look
// at its spans, whose columns stay in the mapping. The tables are checked as MappedTimeline checks them;
// spans are when they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "workloads/schedule/timeline.h"

namespace moebius {

struct TimelineFile;  // of timeline_load.cpp

class SpanColumns {
 public:
  explicit SpanColumns(const std::string& path);  // truncated, foreign or inconsistent files are input_error
  ~SpanColumns();
  SpanColumns(SpanColumns&&) noexcept;

  std::size_t size() const { return size_; }
  const Timeline& tables() const;                 // with `spans` left empty
  std::string fact(std::string_view name) const;  // empty when the run has no such fact
  const std::string& name() const;

  Span span(std::size_t i) const;  // input_error when it is inconsistent
  const OpRow& op_of(const Span& span) const;
  const SubmissionRow& submission_of(const Span& span) const;

  // The row in tables().ops of span i, after checking what a lane is made of: its submission and op exist,
  // its class is that of the submission, its lane is one, 0 <= start <= end. Otherwise input_error.
  std::uint32_t checked_row(std::size_t i) const;

  // Single cells, unchecked.
  std::int32_t sequence(std::size_t i) const { return cell<std::int32_t>(sequence_, i); }
  std::int32_t op(std::size_t i) const { return cell<std::int32_t>(op_, i); }
  std::int32_t rank_class(std::size_t i) const { return cell<std::int32_t>(rank_class_, i); }
  Lane lane(std::size_t i) const { return cell<Lane>(lane_, i); }
  std::int64_t start(std::size_t i) const { return cell<std::int64_t>(start_, i); }
  std::int64_t end(std::size_t i) const { return cell<std::int64_t>(end_, i); }
  std::int64_t work_start(std::size_t i) const { return cell<std::int64_t>(work_start_, i); }

  // The pages of spans first .. first + count of all columns may leave memory; they come back when read
  // again.
  void forget(std::size_t first, std::size_t count) const;

 private:
  template <class T>
  static T cell(const char* column, std::size_t i) {
    T value;
    std::memcpy(&value, column + i * sizeof(T), sizeof(T));
    return value;
  }

  std::unique_ptr<const TimelineFile> file_;
  std::size_t size_ = 0;
  const char *sequence_ = nullptr, *op_ = nullptr, *rank_class_ = nullptr, *lane_ = nullptr,
             *start_ = nullptr, *end_ = nullptr, *work_start_ = nullptr;
};

}  // namespace moebius
