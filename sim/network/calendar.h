// Events in the order of time, to the width of a bucket: a ring of buckets, so that adding and taking cost the
// same however many wait. Events of one bucket come in the order in which they were added.
#pragma once

#include <cstdint>
#include <vector>

namespace moebius {

struct CalendarEvent {
  double time = 0;  // s
  std::int32_t what = 0;
  std::uint8_t kind = 0;
};

class Calendar {
 public:
  // `furthest`: no event is further ahead of the one taken last.
  Calendar(double width, double furthest);

  // An event of the past is one of now.
  void push(const CalendarEvent& event);
  CalendarEvent pop();  // there must be one

 private:
  double width_;
  std::vector<std::vector<CalendarEvent>> ring_;
  std::int64_t bucket_ = 0;  // since time 0
  std::size_t next_ = 0;     // in the bucket at hand
  std::int64_t size_ = 0;
};

}  // namespace moebius
