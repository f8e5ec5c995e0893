// What the program takes from this library: sim/simgrid_parts.cpp.
#include "sim/simgrid_parts.h"

#include <xbt/base.h>

#include <algorithm>

#include <fmt/format.h>

#include <simgrid/s4u.hpp>

#include "hw/error.h"
#include "sim/simgrid/machine_model.h"
#include "sim/simgrid/native_network.h"
#include "sim/simgrid/zone.h"

namespace moebius {

namespace {

// Plain max-min as far as SimGrid lets one choose: CM02 with its own corrections off, times to a picosecond,
// and only errors on its log. SimGrid takes the claims of messages (1 / latency, some 1e5 each) off a wire
// one by one and compares what is left with maxmin/precision as it stands: 4,096 claims leave up to 1e-5 by
// rounding, which a smaller precision takes for a claim that is still there, and SimGrid aborts.
std::unique_ptr<simgrid::s4u::Engine> make_engine() {
  if (simgrid::s4u::Engine::has_instance())
    throw run_error("SimGrid allows one engine at a time in a process");
  std::vector<std::string> arguments = {"moebius"};
  for (const char* setting :
       {"network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0",
        "network/crosstraffic:0", "network/TCP-gamma:0", "surf/precision:1e-12", "maxmin/precision:1e-4"}) {
    arguments.push_back(fmt::format("--cfg={}", setting));
  }
  arguments.push_back("--log=root.thres:error");
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int count = static_cast<int>(arguments.size());
  return std::make_unique<simgrid::s4u::Engine>(&count, pointers.data());
}

class SimGridDriver : public MachineDriver {
 public:
  SimGridDriver(const Cluster& cluster, const std::vector<int>& devices, bool native, std::uint64_t seed)
      : engine_(make_engine()),
        zone_(new Zone(cluster, devices, native, seed)),  // the engine owns its root zone
        model_(std::make_shared<MachineModel>(origin_, !native)) {
    engine_->add_model(model_);  // last, so that the network has done its part when the machine acts
  }

  void run(Machine& machine, Time until) override { model_->run(*engine_, machine, until); }
  const Zone& zone() const { return *zone_; }
  double origin() const { return origin_; }

 private:
  std::unique_ptr<simgrid::s4u::Engine> engine_;
  Zone* zone_;
  double origin_ = simgrid::s4u::Engine::get_clock();  // SimGrid's clock goes on from engine to engine
  std::shared_ptr<MachineModel> model_;
};

// Every device with a rank for the native network; otherwise those whose ranks are simulated.
std::vector<int> devices_in_use(const Layout& layout, bool native) {
  std::vector<int> devices;
  if (native) {
    devices.assign(layout.device_of_rank.begin(), layout.device_of_rank.end());
  } else {
    for (const RankClass& rank_class : layout.classes)
      devices.push_back(layout.device_of_rank[rank_class.representative()]);
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

}  // namespace

extern "C" void moebius_make_simgrid_parts(const SimGridNeeds& needs, SimGridParts& parts) {
  const auto& [cluster, layout, native, seed] = needs;
  const std::vector<int> devices = devices_in_use(layout, native);
  if (native && devices.size() > kMostNativeDevices) {
    throw run_error(fmt::format("the native network connects at most {} devices, this run uses {}: use fluid",
                                kMostNativeDevices, devices.size()));
  }
  auto driver = std::make_unique<SimGridDriver>(cluster, devices, native, seed);
  if (native) parts.network = std::make_unique<NativeNetwork>(driver->zone(), driver->origin());
  parts.driver = std::move(driver);
}

}  // namespace moebius
