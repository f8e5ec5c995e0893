#include "workloads/study/placement/volume_partition.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <boost/graph/adjacency_list.hpp>

namespace moebius {
namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                                    boost::property<boost::edge_weight_t, double>>;
using Volumes = std::map<std::pair<std::int32_t, std::int32_t>, double>;  // the smaller first

void add(Volumes& volumes, std::int32_t a, std::int32_t b, double bytes) {
  if (a != b) volumes[{std::min(a, b), std::max(a, b)}] += bytes;
}

Graph graph_of(const Volumes& volumes, int vertices) {
  Graph graph(vertices);
  for (const auto& [pair, bytes] : volumes) boost::add_edge(pair.first, pair.second, bytes, graph);
  return graph;
}

Graph graph_of(const std::vector<RankExchange>& exchanges, int ranks) {
  Volumes volumes;
  for (const RankExchange& exchange : exchanges) {
    const std::vector<std::int32_t>& members = exchange.ranks;
    const std::size_t size = members.size();
    for (std::size_t i = 0; i < size; ++i)
      if (exchange.around > 0) add(volumes, members[i], members[(i + 1) % size], exchange.around);
    for (std::size_t i = 0; exchange.between > 0 && i < size; ++i)
      for (std::size_t j = 0; j < i; ++j) add(volumes, members[i], members[j], 2 * exchange.between);
    for (const VolumeEdge& edge : exchange.edges)
      add(volumes, members[edge.from], members[edge.to], edge.bytes);
  }
  return graph_of(volumes, ranks);
}

class Partition {
 public:
  Partition(const Graph& graph, const std::vector<int>& sizes)
      : graph_(graph), sizes_(sizes), part_(boost::num_vertices(graph), -1) {
    fill();
    connect();
    for (int pass = 0; pass < kPasses && refine(); ++pass) {
    }
  }

  const std::vector<int>& parts() const { return part_; }

 private:
  static constexpr int kPasses = 8;
  int vertices() const { return static_cast<int>(part_.size()); }

  template <class Visit>
  void each_neighbour(int vertex, Visit visit) const {
    const auto weights = boost::get(boost::edge_weight, graph_);
    for (auto [edge, end] = boost::out_edges(vertex, graph_); edge != end; ++edge)
      visit(static_cast<int>(boost::target(*edge, graph_)), weights[*edge]);
  }

  // Beginning with who sends most to the part before.
  void fill() {
    std::vector<double> pull(vertices(), 0);
    for (std::size_t part = 0; part < sizes_.size(); ++part) {
      for (int taken = 0; taken < sizes_[part]; ++taken) {
        int best = -1;
        for (int vertex = 0; vertex < vertices(); ++vertex)
          if (part_[vertex] < 0 && (best < 0 || pull[vertex] > pull[best])) best = vertex;
        if (best < 0) return;
        part_[best] = static_cast<int>(part);
        if (taken == 0) std::fill(pull.begin(), pull.end(), 0);
        each_neighbour(best, [&](int other, double bytes) { pull[other] += bytes; });
      }
    }
  }

  void connect() {
    to_part_.assign(vertices(), std::vector<double>(sizes_.size(), 0));
    members_.assign(sizes_.size(), {});
    for (int vertex = 0; vertex < vertices(); ++vertex) {
      members_[part_[vertex]].push_back(vertex);
      each_neighbour(vertex, [&](int other, double bytes) { to_part_[vertex][part_[other]] += bytes; });
    }
  }

  double between(int a, int b) const {
    double sum = 0;
    each_neighbour(a, [&](int other, double bytes) { sum += other == b ? bytes : 0; });
    return sum;
  }

  // What a swap of the two keeps inside parts.
  double gain(int a, int b) const {
    return to_part_[a][part_[b]] - to_part_[a][part_[a]] + to_part_[b][part_[a]] - to_part_[b][part_[b]] -
           2 * between(a, b);
  }

  void leave(int vertex, int from, int to) {
    each_neighbour(vertex, [&](int other, double bytes) {
      to_part_[other][from] -= bytes;
      to_part_[other][to] += bytes;
    });
    std::replace(members_[from].begin(), members_[from].end(), vertex, -1);
    part_[vertex] = to;
  }

  void swap(int a, int b) {
    const int of_a = part_[a], of_b = part_[b];
    leave(a, of_a, of_b);
    leave(b, of_b, of_a);
    std::replace(members_[of_a].begin(), members_[of_a].end(), -1, b);
    std::replace(members_[of_b].begin(), members_[of_b].end(), -1, a);
  }

  // Each vertex with the best partner in the part that draws it most.
  bool refine() {
    bool better = false;
    for (int vertex = 0; vertex < vertices(); ++vertex) {
      const std::vector<double>& pulls = to_part_[vertex];
      const auto part = static_cast<int>(std::max_element(pulls.begin(), pulls.end()) - pulls.begin());
      if (part == part_[vertex]) continue;
      int best = -1;
      double most = 1e-9 * pulls[part];
      for (const int other : members_[part]) {
        const double now = gain(vertex, other);
        if (now > most) best = other, most = now;
      }
      if (best < 0) continue;
      swap(vertex, best);
      better = true;
    }
    return better;
  }

  const Graph& graph_;
  const std::vector<int>& sizes_;
  std::vector<int> part_;
  std::vector<std::vector<double>> to_part_;  // bytes, by vertex and part
  std::vector<std::vector<int>> members_;     // by part
};

// Vertices of one part are one.
Graph contracted(const Graph& graph, const std::vector<int>& part, int parts) {
  Volumes volumes;
  const auto weights = boost::get(boost::edge_weight, graph);
  for (auto [edge, end] = boost::edges(graph); edge != end; ++edge)
    add(volumes, part[boost::source(*edge, graph)], part[boost::target(*edge, graph)], weights[*edge]);
  return graph_of(volumes, parts);
}

// Indices by part, in a part ascending.
std::vector<std::int32_t> by_part(const std::vector<int>& part) {
  std::vector<std::int32_t> order(part.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return part[a] < part[b]; });
  return order;
}

}  // namespace

std::vector<std::int32_t> order_by_volume(const std::vector<RankExchange>& exchanges, int ranks,
                                          const PartSizes& sizes) {
  const Graph graph = graph_of(exchanges, ranks);
  const std::vector<int> node = Partition(graph, sizes.nodes).parts();
  const bool equal =
      std::adjacent_find(sizes.nodes.begin(), sizes.nodes.end(), std::not_equal_to<>()) == sizes.nodes.end();
  if (!equal || sizes.leaves.size() < 2) return by_part(node);
  const Graph nodes = contracted(graph, node, static_cast<int>(sizes.nodes.size()));
  const std::vector<std::int32_t> filled = by_part(Partition(nodes, sizes.leaves).parts());
  std::vector<int> place(filled.size());  // of each node in the order of leaves
  for (std::size_t i = 0; i < filled.size(); ++i) place[filled[i]] = static_cast<int>(i);
  std::vector<int> place_of_rank;
  for (const int of : node) place_of_rank.push_back(place[of]);
  return by_part(place_of_rank);
}

}  // namespace moebius
