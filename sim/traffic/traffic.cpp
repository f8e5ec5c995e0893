#include "sim/traffic/traffic.h"

namespace moebius {

Traffic listed(const Traffic& traffic) {
  Traffic all = traffic;
  all.meshes.clear();
  for (const Mesh& mesh : traffic.meshes) {
    for (std::size_t i = 0; i < mesh.members.size(); ++i) {
      for (std::size_t step = 1; step < mesh.members.size(); ++step) {
        const std::int32_t to = mesh.members[(i + step) % mesh.members.size()];
        all.edges.push_back({mesh.members[i], to, mesh.bytes, mesh.messages[i]});
      }
    }
  }
  return all;
}

}  // namespace moebius
