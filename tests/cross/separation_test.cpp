// Attention and experts apart: what is answered does not depend on where the experts stand, nor on how many
// microbatches go to them and back.
#include <catch2/catch.hpp>

#include "tests/cross/small_serving.h"

namespace moebius {
namespace {

ServingJob apart(ServingJob job, int experts, int microbatches) {
  job.plan.ep = experts;
  job.plan.apart = {experts, microbatches, job.plan.dp, 8};
  return job;
}

}  // namespace

TEST_CASE("attention and experts apart answer what they answer together") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    ServingJob job = small_service(small_model(attention));
    job.plan.dp = 2;
    const Tokens together = exact_answers(job);
    for (const int experts : {1, 2, 4})
      for (const int microbatches : {1, 3}) {
        INFO(experts << " ranks of experts, " << microbatches << " microbatches");
        CHECK(exact_answers(apart(job, experts, microbatches)) == together);
      }
  }
}

TEST_CASE("ranks of attention keep shared experts with their gate") {
  ServingJob job = small_service(with_shared_gate(small_model(AttentionKind::kGqa)));
  job.plan.dp = 2;
  const Tokens together = exact_answers(job);
  CHECK(exact_answers(apart(job, 2, 2)) == together);
  job.model.experts.shared_gate = false;
  CHECK(exact_answers(job) != together);
}

// Latent attention, experts in groups, a dense layer before them. In 8 bits the sums of experts come in
// another order apart than together, and what lies close to the middle of two numbers is rounded otherwise:
// no test of that.
TEST_CASE("all parts of a large model answer apart what they answer together") {
  ServingJob job = small_service(full_model());
  job.model.mtp_layers = 0;
  job.plan.dp = 2;
  CHECK(exact_answers(apart(job, 4, 2)) == exact_answers(job));
}

TEST_CASE("delta networks keep the states of all sequences where experts stand apart") {
  ServingJob job = small_service(small_delta_model());
  job.plan.dp = 2;
  const Tokens together = exact_answers(job);
  for (const int microbatches : {1, 3}) CHECK(exact_answers(apart(job, 2, microbatches)) == together);
}

}  // namespace moebius
