// A server or super-node: how many accelerators share one scale-up domain, and what stands beside them.
#pragma once

#include <string>
#include <vector>

#include "hw/accelerator.h"
#include "hw/units.h"

namespace moebius {

enum class ScaleUp {
  kSwitch,
  kFullMesh,
  kPcie
};  // NVSwitch-like crossbar; direct links to each peer; host bridge

struct Node {
  std::string id;  // "hgx-8"
  std::vector<std::string> aliases;
  int accelerators = 0;
  ScaleUp scale_up = ScaleUp::kSwitch;
  int nics = 0;       // scale-out NICs; fewer than accelerators: equal neighbours share one
  ByteRate nic_rate;  // line rate of one of them, per direction; zero: what its accelerators state
  int rails = 0;      // NIC i hangs on rail i % rails of a rail-optimised fabric (8 of a server, 4 of a tray)
  Bytes host_memory;
  ByteRate host_memory_rate;         // achieved, all sockets together
  Time scale_up_latency;             // one message between two accelerators of the node, wire and switch only
  int board = 0;                     // accelerators on one board of a super-node; 0: the node is one board
  Time board_latency;                // more, between two boards
  double board_efficiency = 1;       // share of the link that crosses boards, all peers together
  Watts overhead_power;              // fans, CPUs, NICs
  std::vector<std::string> storage;  // ids of local devices
  std::vector<Fact> facts;
};

// A storage device (SSD tier) of the catalog.
struct Storage {
  std::string id;  // "nvme-gen5"
  std::vector<std::string> aliases;
  ByteRate read_rate, write_rate;
  double read_iops = 0, write_iops = 0;
  Time read_latency, write_latency;
  Bytes capacity;
  std::vector<Fact> facts;
};

}  // namespace moebius
