#include <array>
#include <deque>

#include "workloads/training/pipeline/pipeline_orders.h"

namespace moebius {
namespace {

// Writes the passes of one rank. A stream is what enters at this rank's end of the pipeline (0) or comes from
// the other one (1).
class DualWriter {
 public:
  DualWriter(const PipelineSpec& spec, int rank)
      : both_ways_(spec.kind == PipelineKind::kDualPipe),
        far_(both_ways_ && rank >= spec.ranks / 2),
        depth_(both_ways_ ? spec.ranks / 2 : spec.ranks),
        place_(far_ ? spec.ranks - 1 - rank : rank),
        of_stream_(both_ways_ ? spec.microbatches / 2 : spec.microbatches) {}

  // depth_ ranks stand between an end and the middle; place_ of them before this one.
  std::vector<Pass> write() {
    const int after = depth_ - place_ - 1;  // ranks between this one and the middle
    repeat(2 * after, [&] { forward(0); });
    repeat(place_ + 1, [&] { forward(0), forward(1); });
    repeat(after, [&] { backward_input(1), weight(), forward(1); });
    const int main = of_stream_ - 2 * depth_ + place_ + 1;
    for (int i = 0; i < main; ++i) {
      // In the middle the two first chunks to meet are not overlapped: that would only prolong the bubble.
      if (i == 0 && after == 0)
        forward(0), backward(1);
      else
        pair(0, 1);
      pair(1, 0);
    }
    repeat(after, [&] { backward(1), pair(1, 0); });
    write_end(place_ + 1);
    repeat(after, [&] { weight(), backward_input(0); });
    repeat(place_ + 1, [&] { weight(); });
    return std::move(passes_);
  }

 private:
  template <class Body>
  void repeat(int times, const Body& body) {
    for (int i = 0; i < times; ++i) body();
  }

  // Backward passes of both streams in turn; those of the second half leave their weights for later.
  void write_end(int times) {
    bool late = false;
    for (int i = 0; i < times; ++i) {
      late = late || (i == times / 2 && place_ % 2 == 1);
      late ? backward_input(1) : backward(1);
      late = late || (i == times / 2 && place_ % 2 == 0);
      late ? backward_input(0) : backward(0);
    }
  }

  // Both ways, the other end's first stream is the second one of the step, in the second chunk of each rank.
  PassPart part(int stream, int index) const {
    const int chunk = far_ ? 1 - stream : stream;
    return {chunk, both_ways_ ? chunk * of_stream_ + index : index};
  }
  PassPart next_forward(int stream) { return part(stream, forwards_[stream]++); }
  PassPart next_backward(int stream) { return part(stream, backwards_[stream]++); }

  void forward(int stream) { passes_.push_back({PassKind::kForward, next_forward(stream)}); }
  void backward(int stream) { passes_.push_back({PassKind::kBackward, next_backward(stream)}); }
  void backward_input(int stream) {
    passes_.push_back({PassKind::kBackwardInput, next_backward(stream)});
    late_.push_back(passes_.back().part);
  }
  void weight() {
    passes_.push_back({PassKind::kBackwardWeight, late_.front()});
    late_.pop_front();
  }
  void pair(int forward_stream, int backward_stream) {
    const PassPart ahead = next_forward(forward_stream);
    passes_.push_back({PassKind::kPair, ahead, next_backward(backward_stream)});
  }

  bool both_ways_, far_;
  int depth_, place_, of_stream_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::deque<PassPart> late_;  // whose weights' gradients are still to come
  std::vector<Pass> passes_;
};

}  // namespace

std::vector<Pass> dual_pipe(const PipelineSpec& spec, int rank) {
  return DualWriter(spec, rank).write();
}

}  // namespace moebius
