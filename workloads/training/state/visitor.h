// A tensor that comes before a stretch of ops and goes after it.
#pragma once

#include "workloads/training/layers/builder.h"

namespace moebius {

struct Visitor {
  TensorId here = kNoTensor;
  TensorId home = kNoTensor;    // in host memory
  TensorId shard = kNoTensor;   // of this rank, on the device: of all, or the larger one of a few neighbours
  TensorId half = kNoTensor;    // whole in BF16, from which it is quantised
  TensorId part = kNoTensor;    // that this rank leaves for its neighbours
  TensorId buffer = kNoTensor;  // that a gather fills, where it is copied out
  bool gathered = false, loaded = false, stored = false;
  bool forward = false, backward = false;  // multiplied by in which direction
  int first = -1;                          // stretch of its first use
  int last = -1;                           // of its last
  int last_write = 0;                      // stretch

  TensorId arrives() const { return half != kNoTensor ? half : here; }
  bool in_place() const { return shard == arrives(); }  // whole, of which the gather brings what is new
  TensorId filled() const {
    return buffer != kNoTensor && !in_place() ? buffer : arrives();
  }  // by the gather
};

}  // namespace moebius
