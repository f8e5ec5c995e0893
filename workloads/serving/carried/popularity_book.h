// By which popularity the tokens of each request of a service choose their experts, where that changes while
// requests come: by the one of the moment at which the request was to come, or, of a block that several begin
// with, the first of them. So a change of domain is one of what is asked for, and what a request is answered
// depends neither on when it is computed nor on where.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/serving/balancing/expert_course.h"
#include "workloads/serving/carried/carried_service.h"
#include "workloads/serving/carried/prompt_book.h"

namespace moebius {

class PopularityBook {
 public:
  PopularityBook() = default;  // it does not change
  PopularityBook(const CarriedService& service, const PromptBook& prompts);

  bool changes() const { return !weights_.empty(); }
  // Of a name of the prompt book; padding has the first.
  int version_of(std::int32_t name) const;
  const ExpertWeights& weights(int version, int layer) const { return weights_[version].at(layer); }

 private:
  void add_version(const ExpertCourse& course);

  std::vector<int> of_request_, of_block_;
  std::vector<std::map<int, ExpertWeights>> weights_;  // by version, layer of the model
};

}  // namespace moebius
