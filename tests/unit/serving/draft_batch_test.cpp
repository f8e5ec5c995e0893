// Rows of guesses that are checked, and the module that makes them.
#include <catch2/catch.hpp>

#include "models/model.h"
#include "workloads/service/drafter.h"
#include "workloads/serving/system/iteration_timer.h"

namespace moebius {

TEST_CASE("a sequence whose guesses are checked has a row for each, behind the rest of its keys") {
  const Batch batch = batch_of({.decode_sequences = 4, .decode_keys = 100}, 2);
  CHECK(batch.rows() == 12);
  CHECK(batch.sequences[3].past == 97);
  CHECK(batch.sequences[3].length() == 100);
  CHECK(batch_of({.decode_sequences = 4, .decode_keys = 100}).rows() == 4);
}

TEST_CASE("a module that guesses is one layer of the last one's kind") {
  const ModelCatalog models;
  const Model module = module_of(models.model("deepseek-v3"));
  CHECK(module.layers == 1);
  CHECK(module.is_moe_layer(0));
  CHECK(module.mtp_layers == 0);
  CHECK_FALSE(module_of(models.model("llama-3.1-8b")).is_moe_layer(0));
}

}  // namespace moebius
