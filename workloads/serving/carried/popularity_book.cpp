#include "workloads/serving/carried/popularity_book.h"

#include <cmath>

#include "workloads/serving/system/load_surfaces.h"

namespace moebius {
namespace {

Time arrival_of(const CarriedService& service, const TrafficRequest& request) {
  return {std::llround(static_cast<double>(request.arrival.ns) / service.rate_scale)};
}

}  // namespace

PopularityBook::PopularityBook(const CarriedService& service, const PromptBook& prompts) {
  if (!service.drift.changes()) return;
  ExpertCourse course(service.workload.popularity, service.drift, service.workload.seed, service.model);
  std::uint64_t version = 0;
  for (std::size_t i = 0; i < service.requests.size(); ++i) {
    const TrafficRequest& request = service.requests[i];
    course.advance(arrival_of(service, request));
    if (weights_.empty() || course.version() != version) add_version(course);
    version = course.version();
    of_request_.push_back(static_cast<int>(weights_.size()) - 1);
    for (const NamedPiece& piece :
         prompts.pieces(static_cast<std::int32_t>(i), 0, static_cast<std::int32_t>(request.input_tokens))) {
      if (piece.name < PromptBook::kBlocks) continue;
      const auto block = static_cast<std::size_t>(piece.name - PromptBook::kBlocks);
      if (block >= of_block_.size()) of_block_.resize(block + 1, of_request_.back());
    }
  }
}

void PopularityBook::add_version(const ExpertCourse& course) {
  std::map<int, ExpertWeights>& of = weights_.emplace_back();
  for (int i = 0; i < course.layers(); ++i)
    of.emplace(course.layer(i), ExpertWeights(draw_weights(course.chances(i))));
}

int PopularityBook::version_of(std::int32_t name) const {
  if (name < 0) return 0;
  if (name < PromptBook::kBlocks) return of_request_[name];
  return of_block_[name - PromptBook::kBlocks];
}

}  // namespace moebius
