#include "tests/unit/hw/topology.h"

#include <algorithm>
#include <map>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>

namespace moebius {
namespace {

using Plain = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
// Max-flow wants whole numbers and every arc with its reverse.
using Flow = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

// Draws a fabric vertex by vertex; each is made when it is first named.
class Draughtsman {
 public:
  explicit Draughtsman(const Fabric& fabric) : fabric_(fabric), spec_(fabric.spec()) {}

  Topology draw() {
    topology_.nic_of_device.resize(fabric_.num_devices());
    for (int device = 0; device < fabric_.num_devices(); ++device) hang(device);
    if (fabric_.num_regions() > 1) join_regions();
    return std::move(topology_);
  }

 private:
  int vertex(Vertex what) {
    const auto [known, is_new] =
        known_.try_emplace({what.kind, what.index}, static_cast<int>(topology_.vertices.size()));
    if (is_new) topology_.vertices.push_back(what);
    return known->second;
  }
  bool is_known(VertexKind kind, int index) const { return known_.contains({kind, index}); }
  void cable(int a, int b, ByteRate rate) { topology_.cables.push_back({a, b, rate}); }

  // A device's NIC below its leaves; leaves are linked upwards once.
  void hang(int device) {
    const Fabric::Standing at = fabric_.standing(device);
    const bool is_new = !is_known(VertexKind::kNic, at.nic);
    const int nic = topology_.nic_of_device[device] = vertex({VertexKind::kNic, at.nic, at.pod, at.region});
    if (!is_new || spec_.tiers == 0) return;
    const int twins = spec_.nic_ports;
    for (int twin = 0; twin < twins; ++twin) {
      const bool first = !is_known(VertexKind::kLeaf, at.leaf * twins + twin);
      const int leaf = vertex({VertexKind::kLeaf, at.leaf * twins + twin, at.pod, at.region});
      cable(nic, leaf, fabric_.capacity({WireKind::kNicOutPort, at.nic * twins + twin}));
      if (first) link_leaf(leaf, at, twin);
    }
  }

  void link_leaf(int leaf, const Fabric::Standing& at, int twin) {
    if (spec_.tiers < 2) return link_top(leaf, at.region);
    const int uplinks = fabric_.leaf_uplinks();
    for (int u = twin; u < uplinks; u += spec_.nic_ports) {
      const bool first = !is_known(VertexKind::kSpine, at.pod * uplinks + u);
      const int spine = vertex({VertexKind::kSpine, at.pod * uplinks + u, at.pod, at.region});
      cable(leaf, spine, fabric_.capacity({WireKind::kLeafUpPort, at.leaf * uplinks + u}));
      if (first) link_spine(spine, at, u);
    }
  }

  void link_spine(int spine, const Fabric::Standing& at, int u) {
    if (spec_.tiers < 3) return link_top(spine, at.region);
    const int uplinks = fabric_.leaf_uplinks(), plane = at.region * spec_.planes + at.pod % spec_.planes;
    for (int k = 0; k < fabric_.spine_uplinks(); ++k) {
      const int index = (plane * uplinks + u) * fabric_.spine_uplinks() + k;
      const bool first = !is_known(VertexKind::kCore, index);
      const int core = vertex({VertexKind::kCore, index, 0, at.region});
      cable(spine, core,
            fabric_.capacity({WireKind::kPodUpPort, (at.pod * uplinks + u) * fabric_.spine_uplinks() + k}));
      if (first) link_top(core, at.region);
    }
  }

  // The border switch of a region takes all that comes: the fibre is what limits it.
  void link_top(int vertex_at_top, int region) {
    if (fabric_.num_regions() == 1) return;
    cable(vertex_at_top, vertex({VertexKind::kBorder, region, 0, region}), {kUnlimited});
  }

  void join_regions() {
    const ByteRate link = fabric_.capacity({WireKind::kRegionLink, 0});
    for (int a = 0; a < fabric_.num_regions(); ++a) {
      for (int b = a + 1; b < fabric_.num_regions(); ++b)
        cable(vertex({VertexKind::kBorder, a, 0, a}), vertex({VertexKind::kBorder, b, 0, b}), link);
    }
  }

  static constexpr double kUnlimited = 1e17;

  const Fabric& fabric_;
  const FabricSpec& spec_;
  Topology topology_;
  std::map<std::pair<VertexKind, int>, int> known_;
};

class Arcs {
 public:
  explicit Arcs(Flow& graph) : graph_(graph) {}

  void add(int a, int b, double there, double back) {
    const auto forth = boost::add_edge(a, b, graph_).first, reverse = boost::add_edge(b, a, graph_).first;
    boost::put(boost::edge_capacity, graph_, forth, static_cast<std::int64_t>(there));
    boost::put(boost::edge_capacity, graph_, reverse, static_cast<std::int64_t>(back));
    boost::put(boost::edge_reverse, graph_, forth, reverse);
    boost::put(boost::edge_reverse, graph_, reverse, forth);
  }

 private:
  Flow& graph_;
};

}  // namespace

Topology topology_of(const Fabric& fabric) {
  return Draughtsman(fabric).draw();
}

ShortestWays shortest_ways(const Topology& topology, int from_device, int to_device) {
  Plain graph(topology.vertices.size());
  for (const Cable& cable : topology.cables) boost::add_edge(cable.a, cable.b, graph);
  const int from = topology.nic_of_device[from_device], to = topology.nic_of_device[to_device];
  std::vector<int> distance(topology.vertices.size(), 0);
  std::vector<std::size_t> order;
  std::vector<std::int64_t> ways(topology.vertices.size(), 0);
  ways[from] = 1;
  const auto count = [&](auto edge, const auto& of) {  // an edge examined from the nearer end
    const auto a = boost::source(edge, of), b = boost::target(edge, of);
    if (distance[b] == distance[a] + 1) ways[b] += ways[a];
  };
  struct Counter : boost::default_bfs_visitor {
    std::vector<int>& distance;
    const decltype(count)& examined;
    Counter(std::vector<int>& d, const decltype(count)& c) : distance(d), examined(c) {}
    void tree_edge(Plain::edge_descriptor edge, const Plain& of) const {
      distance[boost::target(edge, of)] = distance[boost::source(edge, of)] + 1;
      examined(edge, of);
    }
    void non_tree_edge(Plain::edge_descriptor edge, const Plain& of) const { examined(edge, of); }
  };
  boost::breadth_first_search(graph, from, boost::visitor(Counter(distance, count)));
  return {std::max(0, distance[to] - 1), ways[to]};
}

ByteRate max_flow(const Fabric& fabric, const Topology& topology, int split) {
  const int vertices = static_cast<int>(topology.vertices.size()), source = vertices, sink = vertices + 1;
  Flow graph(vertices + 2);
  Arcs arcs(graph);
  for (const Cable& cable : topology.cables) arcs.add(cable.a, cable.b, cable.rate.value, cable.rate.value);
  for (int v = 0; v < vertices; ++v) {
    const Vertex& vertex = topology.vertices[v];
    if (vertex.kind != VertexKind::kNic) continue;
    const double rate = fabric.capacity({WireKind::kNicOut, vertex.index}).value;
    const bool sends = fabric.node_of(vertex.index) < split;
    arcs.add(sends ? source : v, sends ? v : sink, rate, 0);
  }
  return {static_cast<double>(boost::edmonds_karp_max_flow(graph, source, sink))};
}

}  // namespace moebius
