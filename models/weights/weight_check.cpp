#include "models/weights/weight_check.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "models/weights/safetensors.h"

namespace moebius {
namespace {

using Found = std::map<std::string, FoundWeight>;

class WeightCheck {
 public:
  WeightCheck(const std::string& checkpoint, const Model& model, const std::vector<Weight>& expected,
              const Found& found)
      : checkpoint_(checkpoint), model_(model), found_(found) {
    for (const Weight& weight : expected) add(weight);
  }

  void run() const {
    for (const auto& [name, shape] : wanted_) {
      if (found_.count(name) == 0 && optional_.count(name) == 0) missing(name);
    }
    for (const auto& [name, weight] : found_) {
      const auto wanted = wanted_.find(name);
      if (wanted == wanted_.end()) fail(name, "is not a weight of", suggestion(name, unfound()));
      if (wanted->second != weight.shape) {
        fail(name, "of",
             fmt::format(": expected shape {}, found {}", shape_text(wanted->second),
                         shape_text(weight.shape)));
      }
    }
  }

 private:
  // An 8-bit weight needs the scales of its blocks; others have none.
  void add(const Weight& weight) {
    wanted_[weight.name] = weight.shape;
    if (weight.optional) optional_[weight.name] = true;
    const auto found = found_.find(weight.name);
    const bool scaled = found != found_.end() && found->second.type == StoredType::kFp8E4m3;
    if (scaled) wanted_[weight.name + kScaleSuffix] = scale_shape(weight.shape);
  }

  // Names that are wanted and not there: what an unknown name may have been meant for.
  std::vector<std::string> unfound() const {
    std::vector<std::string> names;
    for (const auto& [name, shape] : wanted_) {
      if (found_.count(name) == 0) names.push_back(name);
    }
    return names;
  }

  [[noreturn]] void missing(const std::string& name) const {
    std::vector<std::string> unknown;
    for (const auto& [other, weight] : found_) {
      if (wanted_.count(other) == 0) unknown.push_back(other);
    }
    const std::string nearest = nearest_name(name, unknown);
    fail(name, "of",
         nearest.empty() ? " is missing" : fmt::format(" is missing (is \"{}\" meant?)", nearest));
  }

  [[noreturn]] void fail(const std::string& name, std::string_view relation, const std::string& what) const {
    throw input_error(fmt::format("{}: tensor \"{}\" {} {}{}", checkpoint_, name, relation, model_.id, what));
  }

  const std::string& checkpoint_;
  const Model& model_;
  const Found& found_;
  std::map<std::string, std::vector<std::int64_t>> wanted_;
  std::map<std::string, bool> optional_;
};

}  // namespace

void check_weights(const std::string& checkpoint, const Model& model, const std::vector<Weight>& expected,
                   const std::map<std::string, FoundWeight>& found) {
  WeightCheck(checkpoint, model, expected, found).run();
}

void require_mapped(const std::string& checkpoint, const Model& model) {
  const std::string reason = unmapped_reason(model);
  if (reason.empty()) return;
  throw input_error(fmt::format("{}: the weights of {} are not mapped: {}", checkpoint, model.id, reason));
}

}  // namespace moebius
