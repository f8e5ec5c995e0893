#include "hw/error.h"
#include "sim/event_queue.h"
#include "sim/network/network.h"

namespace moebius {
namespace {

class AlphaBetaNetwork : public Network {
 public:
  void start(std::int32_t transfer, const Step& step, std::uint64_t id, Time now) override {
    ends_.push({later(now, step.alone), id, transfer, 0});
  }

  Time next_event() override { return ends_.empty() ? kForever : ends_.top().time; }

  void set_capacity(int, double, Time) override {
    throw run_error("the alpha-beta network shares no wires, so that none of them can change: use fluid");
  }

  double carried(int) const override {
    throw run_error("the alpha-beta network shares no wires, so that it counts no bytes on them: use fluid");
  }

  void advance(Time now, std::vector<std::int32_t>& ended) override {
    for (; next_event() <= now; ends_.pop()) ended.push_back(ends_.top().slot);
  }

 private:
  EventQueue ends_;
};

}  // namespace

std::unique_ptr<Network> make_alpha_beta_network() {
  return std::make_unique<AlphaBetaNetwork>();
}

}  // namespace moebius
