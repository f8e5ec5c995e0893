#include "sim/network/packet_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/calibration/csv.h"

namespace moebius {
namespace {

constexpr int kMostHosts = 1 << 16;
constexpr int kMostFlows = 1 << 22;

// One row of the table, with the sentence of its errors.
class RowReader {
 public:
  RowReader(const std::string& path, const Csv& csv, const CsvRow& row) : path_(path), csv_(csv), row_(row) {}

  PacketRow read() const {
    PacketRow row;
    row.id = csv_.text(row_, "id");
    row.pattern = csv_.text(row_, "pattern");
    row.hosts = integer("hosts", csv_.text(row_, "hosts"), kMostHosts);
    read_fabric(row.spec);
    read_routing(row.spec);
    read_endpoints(row);
    read_sizes(row);
    row.measured = {.mean = csv_.number(row_, "mean_fct_us") * 1e-6,
                    .p50 = csv_.number(row_, "p50_fct_us") * 1e-6,
                    .p99 = csv_.number(row_, "p99_fct_us") * 1e-6,
                    .last = csv_.number(row_, "max_fct_us") * 1e-6,
                    .resent = csv_.number(row_, "retransmitted_packets") /
                              std::max(1.0, csv_.number(row_, "data_packets"))};
    return row;
  }

 private:
  [[noreturn]] void fail(std::string_view column, std::string_view expected, std::string_view found) const {
    throw input_error(fmt::format("{}:{}: {}: expected {}, found \"{}\"", path_, row_.line, column, expected,
                                  found.substr(0, 80)));
  }

  int integer(std::string_view column, std::string_view text, int most) const {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > most)
      fail(column, fmt::format("a number from 0 to {}", most), text);
    return value;
  }

  // Of "tor=8d4u": 8 links down and 4 up.
  std::pair<int, int> links(const std::string& word) const {
    const std::size_t equals = word.find('='), down = word.find('d');
    if (equals == std::string::npos || down == std::string::npos || down < equals)
      fail("fabric", "links as in tor=8d4u", word);
    const std::string up = word.substr(down + 1);
    return {integer("fabric", word.substr(equals + 1, down - equals - 1), kMostHosts),
            up.empty() ? 0 : integer("fabric", up.substr(0, up.size() - 1), kMostHosts)};
  }

  void read_fabric(FabricSpec& spec) const {
    std::istringstream words(csv_.text(row_, "fabric"));
    std::string tiers, word;
    words >> tiers;
    if (tiers != "2t" && tiers != "3t") fail("fabric", "2t or 3t", tiers);
    spec.tiers = tiers == "2t" ? 2 : 3;
    while (words >> word) {
      if (word.starts_with("tor="))
        std::tie(spec.leaf_ports, spec.leaf_uplinks) = links(word);
      else if (word.starts_with("agg="))
        std::tie(spec.pod_leaves, spec.spine_uplinks) = links(word);
      else if (!word.starts_with("pods=") && !word.starts_with("core=") && !word.starts_with("spine="))
        fail("fabric", "pods=, tor=, agg=, core= or spine=", word);
    }
    const bool pods = spec.tiers == 2 || (spec.pod_leaves > 0 && spec.spine_uplinks > 0);
    if (spec.leaf_ports == 0 || spec.leaf_uplinks == 0 || !pods)
      fail("fabric", "links of every tier", csv_.text(row_, "fabric"));
    spec.type = "clos";
    spec.rail_optimised = false;
    spec.switch_ports = kMostHosts;
    spec.oversubscription = 1.0 * spec.leaf_ports / spec.leaf_uplinks;
    if (spec.tiers == 3) spec.core_oversubscription = 1.0 * spec.pod_leaves / spec.spine_uplinks;
    spec.transport_efficiency = 1;
  }

  void read_routing(FabricSpec& spec) const {
    const std::string& routing = csv_.text(row_, "routing");
    if (routing != "spray" && routing != "ecmp_flow" && routing != "adaptive")
      fail("routing", "spray, ecmp_flow or adaptive", routing);
    spec.routing = routing == "spray"      ? Routing::kSpray
                   : routing == "adaptive" ? Routing::kAdaptive
                                           : Routing::kEcmp;
  }

  int host(const PacketRow& row, std::string_view text) const {
    return integer("endpoints", text, row.hosts - 1);
  }

  // "src>dst", "src>dst@a", "src>dst@a.c".
  PacketFlow flow(const PacketRow& row, const std::string& word) const {
    const std::size_t to = word.find('>'), at = word.find('@'), dot = word.find('.');
    if (to == std::string::npos) fail("endpoints", "src>dst", word);
    PacketFlow flow{host(row, word.substr(0, to)), host(row, word.substr(to + 1, at - to - 1))};
    if (flow.from == flow.to) fail("endpoints", "two hosts", word);
    if (at == std::string::npos) {
      if (row.spec.routing == Routing::kEcmp) flow.path = 0;  // under one leaf
      return flow;
    }
    const int spine = integer("endpoints", word.substr(at + 1, dot - at - 1), kMostHosts);
    const int core = dot == std::string::npos ? 0 : integer("endpoints", word.substr(dot + 1), kMostHosts);
    const int uplinks = row.spec.leaf_uplinks;  // core c is wired to the spine c % uplinks of every pod
    flow.path = spine % uplinks + core / uplinks * uplinks;
    return flow;
  }

  void read_endpoints(PacketRow& row) const {
    std::istringstream words(csv_.text(row_, "endpoints"));
    std::string word;
    std::vector<int> members;
    const bool all_to_all = csv_.text(row_, "endpoints").starts_with("members ");
    if (all_to_all) words >> word;
    while (words >> word) {
      if (all_to_all)
        members.push_back(host(row, word));
      else
        row.flows.push_back(flow(row, word));
    }
    row.flows.reserve(row.flows.size() + members.size() * members.size());
    if (std::ssize(members) * std::ssize(members) > kMostFlows)
      fail("endpoints", fmt::format("at most {} flows", kMostFlows), fmt::format("{}", members.size()));
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t k = 1; k < members.size(); ++k)
        row.flows.push_back({members[i], members[(i + k) % members.size()]});
    if (row.flows.empty()) fail("endpoints", "at least one flow", csv_.text(row_, "endpoints"));
  }

  void read_sizes(PacketRow& row) const {
    std::vector<double> sizes;
    std::istringstream words(csv_.text(row_, "flow_bytes"));
    for (std::string word; std::getline(words, word, '+');) {
      sizes.push_back(integer("flow_bytes", word, 2'000'000'000));
      if (sizes.back() < 1) fail("flow_bytes", "at least 1", word);
    }
    if (sizes.size() != 1 && sizes.size() != row.flows.size())
      fail("flow_bytes", fmt::format("one size or {}", row.flows.size()), csv_.text(row_, "flow_bytes"));
    for (std::size_t i = 0; i < row.flows.size(); ++i)
      row.flows[i].bytes = sizes.size() == 1 ? sizes[0] : sizes[i];
  }

  const std::string& path_;
  const Csv& csv_;
  const CsvRow& row_;
};

double off(double predicted, double measured) {
  return 100 * (predicted / measured - 1);
}

}  // namespace

FlowFigures figures_of(const PacketFlowTimes& times) {
  std::vector<double> sorted = times.completion;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return {};
  const auto rank = [&](double share) {
    return sorted[static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size()))) - 1];
  };
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  return {sum / static_cast<double>(sorted.size()), rank(0.5), rank(0.99), sorted.back(),
          static_cast<double>(times.resent) / static_cast<double>(std::max<std::int64_t>(1, times.packets))};
}

// `link.latency` for every cable; the first one is the sender's.
Fabric PacketRow::fabric(const PacketLinks& links) const {
  FabricSpec made = spec;
  made.host_latency = made.hop_latency = links.latency;
  FabricPool pool;
  pool.nodes = hosts;
  pool.devices_per_node = 1;
  pool.nic_rate = links.rate;
  return Fabric(made, {pool});
}

std::vector<PacketRow> read_packet_table(const std::string& path) {
  const Csv csv(path);
  std::vector<PacketRow> rows;
  for (const CsvRow& row : csv.rows()) rows.push_back(RowReader(path, csv, row).read());
  return rows;
}

FlowFigures predict(const PacketRow& row, const PacketLinks& links, const Transport& transport,
                    std::uint64_t seed) {
  return figures_of(run_packet_flows(row.fabric(links), transport, row.flows, seed));
}

std::string packet_table_text(const std::vector<PacketRow>& rows, const std::vector<FlowFigures>& predicted) {
  std::string text = fmt::format("{:<6}{:<24}{:>30}{:>30}{:>20}\n", "id", "pattern",
                                 "mean us (measured, ours)", "last us (measured, ours)", "resent (m., ours)");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FlowFigures &a = rows[i].measured, &b = predicted[i];
    text +=
        fmt::format("{:<6}{:<24}{:>10.2f}{:>10.2f}{:>+9.1f}%{:>10.2f}{:>10.2f}{:>+9.1f}%{:>10.3f}{:>10.3f}\n",
                    rows[i].id, rows[i].pattern, a.mean * 1e6, b.mean * 1e6, off(b.mean, a.mean),
                    a.last * 1e6, b.last * 1e6, off(b.last, a.last), a.resent, b.resent);
  }
  return text;
}

}  // namespace moebius
