#include "workloads/crosscheck/virtual_machine.h"

#include <catch2/catch.hpp>

#include "small_schedule.h"

using namespace moebius;

namespace {

// A device of 100 cores on which an exchange takes 2 us and a byte 1 ns.
Profile profile_of(const std::string& accelerator) {
  Profile profile;
  profile.accelerator = profile.reference.id = accelerator;
  profile.reference.cores = 100;
  profile.device.emplace();
  profile.device->name = "a device";
  profile.device->launch = 3e-6;
  TransferCurve exchange;
  exchange.name = kExchange;
  exchange.latency = 2e-6;
  exchange.rate = 1e9;
  profile.device->transfers = {exchange};
  return profile;
}

}  // namespace

TEST_CASE("virtual ranks of a GPU stand on one chip and share its exchange") {
  const VirtualMachine machine = virtual_machine(profile_of("h200-sxm"), "p.json", "cuda", 4);
  CHECK(machine.cluster.fabric.num_devices() == 1);
  CHECK(machine.device_of_rank == std::vector<std::int32_t>{0, 0, 0, 0});
  REQUIRE(machine.cluster.exchange);
  CHECK(machine.cluster.exchange->wire.rate.value == 1e9);
  CHECK(machine.cluster.exchange->wire.latency == Time{2'000});
  CHECK_FALSE(machine.cluster.exchange->packs);
  CHECK(machine.cluster.exchange->element_bytes == 0);
  CHECK(machine.cluster.pools.front().accelerator.cores == 100);
  CHECK(machine.description == "4 virtual ranks on a device, which they share");
}

TEST_CASE("virtual ranks of the host have a core each and hold 32-bit numbers") {
  const VirtualMachine machine = virtual_machine(profile_of("host"), "p.json", "host", 3);
  CHECK(machine.cluster.fabric.num_devices() == 3);
  CHECK(machine.device_of_rank == std::vector<std::int32_t>{0, 1, 2});
  CHECK(machine.cluster.exchange->packs);
  CHECK(machine.cluster.exchange->element_bytes == 4);
  // No kernel is shorter than an empty op.
  CHECK(machine.cluster.pools.front().accelerator.kernel_floor == Time{3'000});
}

TEST_CASE("the layout of a schedule is placed on the machine's devices") {
  const Layout layout = small_layout(2, false);
  const VirtualMachine machine = virtual_machine(profile_of("h200-sxm"), "p.json", "cuda", 2);
  const Layout placed = placed_on(machine, layout);
  CHECK(placed.device_of_rank == std::vector<std::int32_t>{0, 0});
  CHECK(placed.classes.size() == layout.classes.size());
}

TEST_CASE("a profile that cannot describe the machine is refused in a sentence") {
  Profile tables = profile_of("host");
  tables.device.reset();
  CHECK_THROWS_WITH(virtual_machine(tables, "p.json", "host", 2),
                    "p.json: /device: expected what calibrate --device writes, found tables alone");
  Profile alone = profile_of("host");
  alone.device->transfers.clear();
  CHECK_THROWS_WITH(
      virtual_machine(alone, "p.json", "host", 2),
      "p.json: /device/transfers: expected \"exchange\", the exchange between ranks, found none");
  CHECK_THROWS_WITH(virtual_machine(profile_of("h200-sxm"), "p.json", "host", 2),
                    "p.json: /accelerator: expected \"host\" for --executor host, found \"h200-sxm\"");
  CHECK_THROWS_WITH(virtual_machine(profile_of("host"), "p.json", "cuda", 2),
                    "p.json: /accelerator: expected that of a GPU for --executor cuda, found \"host\"");
}
