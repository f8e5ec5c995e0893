// Transfers as SimGrid's own communications: each message one flow on the zone's links, shared as SimGrid's
// network model shares them. Only for the files that include SimGrid.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include <simgrid/s4u.hpp>

#include "sim/event_queue.h"
#include "sim/network/network.h"
#include "sim/simgrid/zone.h"

namespace moebius {

class NativeNetwork : public Network {
 public:
  // `origin`: SimGrid's clock at our time zero.
  NativeNetwork(const Zone& zone, double origin);
  ~NativeNetwork() override;

  void start(std::int32_t transfer, const Step& step, std::uint64_t id, Time now) override;
  Time next_event() override;
  void set_capacity(int wire, double share, Time now) override;
  double carried(int wire) const override;
  void advance(Time now, std::vector<std::int32_t>& ended) override;

 private:
  struct Running {
    const Step* step = nullptr;
    std::uint64_t id = 0;
    int messages_left = 0;
  };
  // SimGrid keeps our callback for as long as the process lives; it holds on to this, not to the network.
  struct Receiver {
    NativeNetwork* network = nullptr;
  };

  void launch(std::int32_t transfer, Time now);
  void completed(const simgrid::s4u::Activity& activity);

  const Zone& zone_;
  double origin_;
  std::shared_ptr<Receiver> receiver_;
  std::vector<Running> running_;  // by transfer
  EventQueue delays_;             // what the messages' own latencies do not cover
  EventQueue ends_;
  std::unordered_map<const simgrid::s4u::Activity*, std::pair<simgrid::s4u::CommPtr, std::int32_t>> messages_;
};

}  // namespace moebius
