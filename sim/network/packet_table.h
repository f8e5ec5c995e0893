// Measured or packet-level flow completion times, one run a row, and what the packet model says of each.
//
// Columns read: id, fabric ("3t pods=8 tor=4d4u agg=4d4u core=8d" or "2t tor=8d8u spine=16d": links down and
// up of one switch), hosts, pattern, flow_bytes ("2000000", or one size for each flow: "1000000+4000000"),
// routing ("spray", "ecmp_flow", "adaptive"), endpoints ("src>dst", with "@a" or "@a.c" the path's
// aggregation and core switch; or "members h h ...", each of which sends to each other one), mean_fct_us,
// p50_fct_us, p99_fct_us, max_fct_us, data_packets, retransmitted_packets. Hosts are numbered leaf by leaf,
// pod by pod.
#pragma once

#include <string>
#include <vector>

#include "hw/fabric/fabric.h"
#include "sim/network/packet_flows.h"

namespace moebius {

// What such a table does not state: one speed and one cable for all links.
struct PacketLinks {
  ByteRate rate{12.5e9};  // 100 Gb/s, each direction
  Time latency{1000};     // of one link, each way
};

struct FlowFigures {
  double mean = 0, p50 = 0, p99 = 0, last = 0;  // s; nearest rank
  double resent = 0;                            // packets sent again, for each distinct one
};

FlowFigures figures_of(const PacketFlowTimes& times);

struct PacketRow {
  std::string id, pattern;
  FabricSpec spec;
  int hosts = 0;
  std::vector<PacketFlow> flows;
  FlowFigures measured;

  Fabric fabric(const PacketLinks& links) const;
};

// input_error with the file and line for what is not as above.
std::vector<PacketRow> read_packet_table(const std::string& path);

FlowFigures predict(const PacketRow& row, const PacketLinks& links, const Transport& transport,
                    std::uint64_t seed);

// One line a row: id, pattern, mean and last completion measured and predicted with their relative errors,
// resends.
std::string packet_table_text(const std::vector<PacketRow>& rows, const std::vector<FlowFigures>& predicted);

}  // namespace moebius
