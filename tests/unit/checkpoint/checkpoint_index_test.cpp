// Index files come from anywhere: what does not hold is one sentence.
#include "workloads/checkpoint/checkpoint_index.h"

#include "hw/error.h"
#include "tests/process.h"
#include "tests/unit/checkpoint/small_checkpoint.h"

#include "tests/catch.h"

namespace moebius::test {
namespace {

CheckpointIndex small_index() {
  CheckpointIndex index;
  index.layout = Degrees{2, 1, 1};
  index.model = grouped_model();
  index.step = 7;
  index.files = {"rank-00000.safetensors", "rank-00001.safetensors"};
  index.weights["w"] = {
      .type = StoredType::kBf16, .shape = {6, 4}, .axis = 1, .shards = {{0, 0, 2}, {1, 2, 4}}};
  index.weights["w_scale_inv"] = {
      .type = StoredType::kF32, .shape = {3, 1}, .axis = 0, .shards = {{0, 0, 2}, {1, 1, 3}}};
  return index;
}

// The sentence about the index with a part of its text replaced, behind the file's name and line.
std::string fault(const std::string& text, const std::string& replacement) {
  const Scratch scratch;
  std::string changed = index_text(small_index());
  REQUIRE(changed.find(text) != std::string::npos);
  changed.replace(changed.find(text), text.size(), replacement);
  const std::string path = scratch.write("index.json", changed);
  try {
    load_index(path);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    const std::string sentence = error.what();
    return sentence.substr(sentence.find(": ", path.size()) + 2);
  }
  return "no fault";
}

}  // namespace

TEST_CASE("an index is read back as it was written") {
  const Scratch scratch;
  const CheckpointIndex expected = small_index();
  const CheckpointIndex found = load_index(scratch.write("index.json", index_text(expected)));
  CHECK(found.layout == expected.layout);
  CHECK(found.model == expected.model);
  CHECK(found.step == 7);
  CHECK(found.files == expected.files);
  REQUIRE(found.weights.size() == 2);
  CHECK(found.weights.at("w").shards == expected.weights.at("w").shards);
  CHECK(found.weights.at("w").axis == 1);
  CHECK(found.weights.at("w").shape == expected.weights.at("w").shape);
  CHECK(found.weights.at("w").type == StoredType::kBf16);
}

TEST_CASE("files stand beside the index, shards inside their weight") {
  CHECK(fault("\"rank-00001.safetensors\"", "\"../secret\"") ==
        R"(/files: expected the name of a file in the same directory, found "../secret")");
  CHECK(fault("[1, 2, 4]", "[2, 2, 4]") == "/weights/w/shards: expected an integer from 0 to 1, found 2");
  CHECK(fault("[1, 2, 4]", "[1, 2, 5]") == "/weights/w/shards: expected an integer from 0 to 4, found 5");
  CHECK(fault("[1, 2, 4]", "[1, 3, 4]") ==
        "/weights/w/shards: expected shards that ascend and cover 4, found them to end at 2");
  CHECK(fault("[1, 2, 4]", "[1, 4, 2]") == "/weights/w/shards: expected first at most last, found 4 and 2");
  CHECK(fault("\"BF16\"", "\"BF17\"").substr(0, 38) == "/weights/w/dtype: expected one of \"F64");
  // 2^40 * 2^40 elements are 2^80, which is 0 in 64 bits.
  CHECK(fault("[6, 4]", "[0, 1099511627776, 1099511627776]") ==
        "/weights/w/shape: expected at most 8 sizes and 2^48 elements, found more");
  CHECK(fault("\"step\": 7", "\"stepp\": 7") == "expected key \"step\", found none (is \"stepp\" meant?)");
  CHECK(fault("\"heads\": 4", "\"heads\": 0") ==
        "/model/heads: expected an integer from 1 to 10000, found 0");
}

TEST_CASE("a weight of one dimension is cut along that alone") {
  CHECK(fault("[6, 4], \"axis\": 1", "[6], \"axis\": 1") ==
        "/weights/w/axis: expected an integer from 0 to 0, found 1");
}

}  // namespace moebius::test
