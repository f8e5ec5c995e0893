// Where the images of requests are encoded, and by what.
#pragma once

#include <cstdint>
#include <string>

#include "hw/dtype.h"
#include "models/vision_encoder.h"

namespace moebius {

struct EncoderPlan {
  const VisionEncoder* model = nullptr;  // null: requests have no images that anyone computes
  bool apart = false;     // on a pool of its own; otherwise each replica encodes its prompts' images
  std::string pool = {};  // name
  int pool_index = -1;
  int tp = 1, dp = 0;  // ranks of a replica, and replicas; 0: as many as the devices allow
  int max_batch = 8;   // images of one iteration of a replica
  int patches = 0;     // of one image

  bool given() const { return model != nullptr; }
  int tokens() const { return model == nullptr ? 0 : patches / model->patches_of_token(); }
};

}  // namespace moebius
