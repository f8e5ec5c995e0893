// Checkpoints from one layout to another: every byte of every tensor comes back.
#include "workloads/checkpoint/convert.h"

#include "hw/error.h"
#include "tests/process.h"
#include "tests/unit/checkpoint/small_checkpoint.h"
#include "workloads/checkpoint/checkpoint_writer.h"
#include "workloads/checkpoint/interruption.h"
#include "workloads/checkpoint/new_directory.h"
#include "workloads/checkpoint/shard_layout.h"

#include <csignal>
#include "tests/catch.h"

namespace moebius::test {
namespace {

namespace fs = std::filesystem;

// A catalog that knows the small models, by a file beside them.
ModelCatalog catalog_of(const Scratch& scratch) {
  scratch.write("models.json", R"({"sources": {"T": "a test"}, "models": {
    "latent": {"layers": 3, "hidden": 32, "vocabulary": 64, "heads": 4, "attention": "mla",
      "mla": {"q_rank": 12, "kv_rank": 16, "nope_dim": 8, "rope_dim": 4, "v_dim": 6}, "dense_width": 48, "first_dense": 1,
      "mtp_layers": 1, "source": "T", "status": "derived",
      "experts": {"routed": 8, "active": 2, "width": 16, "shared": 1, "shared_width": 16, "score": "sigmoid"}},
    "grouped": {"layers": 2, "hidden": 32, "vocabulary": 64, "heads": 4, "attention": "gqa", "kv_heads": 2, "head_dim": 8,
      "dense_width": 48, "source": "T", "status": "derived"},
    "gated": {"layers": 2, "hidden": 32, "vocabulary": 64, "heads": 4, "attention": "gqa", "kv_heads": 2, "head_dim": 8,
      "source": "T", "status": "derived",
      "experts": {"routed": 4, "active": 4, "width": 16, "shared": 1, "shared_width": 24, "shared_gate": true}},
    "biased": {"layers": 2, "hidden": 32, "vocabulary": 64, "heads": 4, "attention": "gqa", "kv_heads": 2, "head_dim": 8,
      "biases": "qkv", "dense_width": 48, "source": "T", "status": "derived"},
    "mixtral": {"layers": 2, "hidden": 32, "vocabulary": 64, "heads": 4, "attention": "gqa", "kv_heads": 2, "head_dim": 8,
      "source": "T", "status": "derived", "experts": {"routed": 4, "active": 2, "width": 16}}}})");
  return ModelCatalog(scratch.path(""));
}

// The tensors of all files of a Hugging Face directory.
Tensors tensors_in(const std::string& directory) {
  const Checkpoint checkpoint(directory);
  Tensors tensors;
  for (const auto& [name, weight] : checkpoint.index().weights) {
    const StoredTensor tensor{.name = name, .type = weight.type, .shape = weight.shape};
    tensors[name] = {tensor, checkpoint.read(name, whole(weight))};
  }
  return tensors;
}

void require_equal(const Tensors& found, const Tensors& expected) {
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    REQUIRE(found.count(name) == 1);
    CHECK(found.at(name).first.type == tensor.first.type);
    CHECK(found.at(name).first.shape == tensor.first.shape);
    CHECK(found.at(name).second == tensor.second);
  }
}

std::string fault(const ConvertRequest& request, const ModelCatalog& catalog) {
  try {
    convert(request, catalog);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    CHECK_FALSE(fs::exists(request.out));
    return error.what();
  }
  return "no fault";
}

// From Hugging Face through two layouts and back.
void require_round_trip(const std::string& model_name, const Tensors& tensors,
                        const std::vector<std::string>& layouts) {
  const Scratch scratch;
  const ModelCatalog catalog = catalog_of(scratch);
  write_tensors(scratch.path("in.safetensors"), tensors);
  std::string in = scratch.path("in.safetensors"), name = model_name;
  for (const std::string& layout : layouts) {
    const std::string out = scratch.path("cut-" + layout);
    convert({.in = in, .to = layout, .out = out, .model = name}, catalog);
    in = out;
    name = "";  // our checkpoints say whose weights they are
  }
  convert({.in = in, .to = "hf", .out = scratch.path("out"), .model = ""}, catalog);
  require_equal(tensors_in(scratch.path("out")), tensors);
  // Hugging Face's files say whose they are, too.
  convert({.in = scratch.path("out"), .to = layouts.back(), .out = scratch.path("again"), .model = ""},
          catalog);
  CHECK(Checkpoint(scratch.path("again")).index().weights.size() == tensors.size());
}

}  // namespace

TEST_CASE("tensors come back from tp 2, pp 2, ep 4 and ep 2 as they were") {
  const std::vector<std::string> layouts{"tp=2,pp=2,ep=4", "tp=1,ep=2"};
  require_round_trip("latent", random_tensors(latent_model(), WeightNaming::kShared, 1), layouts);
  require_round_trip("grouped", random_tensors(grouped_model(), WeightNaming::kShared, 2),
                     {"tp=2,pp=2", "tp=1"});
  Model mixtral = grouped_model();
  mixtral.dense_width = 0;
  mixtral.experts = {.routed = 4, .active = 2, .width = 16};
  require_round_trip("mixtral", random_tensors(mixtral, WeightNaming::kMixtral, 3),
                     {"tp=2,pp=2,ep=4", "ep=2"});
  require_round_trip("gated", random_tensors(gated_model(), WeightNaming::kSharedOne, 6),
                     {"tp=2,pp=2,ep=4", "ep=2"});
  require_round_trip("biased", random_tensors(biased(grouped_model()), WeightNaming::kShared, 7),
                     {"tp=2,pp=2", "tp=1"});
}

TEST_CASE("8-bit weights keep the factors of blocks that a cut goes through") {
  // Cuts of 24 rows or columns, blocks of 128: every shard needs the whole factor.
  require_round_trip("latent", random_tensors(latent_model(), WeightNaming::kShared, 4, true),
                     {"tp=2,pp=3,ep=8", "tp=4,ep=2"});
}

TEST_CASE("a shard is the part of the weight that its rank computes with") {
  const Scratch scratch;
  const ModelCatalog catalog = catalog_of(scratch);
  const Tensors tensors = random_tensors(latent_model(), WeightNaming::kShared, 5);
  write_tensors(scratch.path("in.safetensors"), tensors);
  convert({.in = scratch.path("in.safetensors"),
           .to = "tp=2,pp=2,ep=4",
           .out = scratch.path("cut"),
           .model = "latent"},
          catalog);
  const SafetensorsFile first(scratch.path("cut/rank-00000.safetensors")),
      second(scratch.path("cut/rank-00001.safetensors"));
  const auto bytes_in = [](const SafetensorsFile& file, const std::string& name) {
    const auto bytes = file.bytes(*file.find(name));
    return Bytes(bytes.begin(), bytes.end());
  };
  // Rows: the first half of the bytes, and the second.
  const std::string up = "model.layers.0.mlp.up_proj.weight";
  const Bytes& whole_up = tensors.at(up).second;
  CHECK(bytes_in(first, up) == Bytes(whole_up.begin(), whole_up.begin() + whole_up.size() / 2));
  CHECK(bytes_in(second, up) == Bytes(whole_up.begin() + whole_up.size() / 2, whole_up.end()));
  // Columns: of 48 in BF16, the second 24 of each row.
  const std::string down = "model.layers.0.mlp.down_proj.weight";
  const Bytes& whole_down = tensors.at(down).second;
  Bytes right;
  for (std::size_t row = 0; row < 32; ++row)
    right.insert(right.end(), whole_down.begin() + row * 96 + 48, whole_down.begin() + row * 96 + 96);
  CHECK(bytes_in(second, down) == right);
  CHECK(second.find(down)->shape == std::vector<std::int64_t>{32, 24});
  // Two experts a member: the third one is the first of member 1. Layer 1 stands on one of the stages.
  const Checkpoint cut(scratch.path("cut"));
  const auto& shards = cut.index().weights.at("model.layers.1.mlp.experts.2.up_proj.weight").shards;
  REQUIRE(shards.size() == 1);
  CHECK(shards[0].file % 4 == 1);
  // Shared experts: rows of gate and up and columns of down, 16 in all, on both tensor-parallel members.
  const std::string shared = "model.layers.1.mlp.shared_experts.";
  for (const auto& [matrix, axis] : {std::pair{"gate_proj", 0}, {"up_proj", 0}, {"down_proj", 1}}) {
    const StoredWeight& stored = cut.index().weights.at(shared + matrix + ".weight");
    CHECK(stored.axis == axis);
    REQUIRE(stored.shards.size() == 2);
    CHECK(stored.shards[0].file % 4 == 0);
    CHECK(stored.shards[0].last == 8);
    CHECK(stored.shards[1].file == stored.shards[0].file + 1);
  }
  CHECK(cut.index().layout == Degrees{2, 2, 4});
  CHECK(cut.index().files.size() == 8);
}

TEST_CASE("degrees that do not divide the shared experts are refused") {
  Model model = latent_model();
  model.experts.shared_width = 18;
  require_divides({2, 1, 1}, model);
  CHECK_THROWS_WITH(require_divides({4, 1, 1}, model),
                    "--to tp=4: does not divide the 18 columns of the shared experts of small");
}

TEST_CASE("Hugging Face files are as large as asked, with an index") {
  const Scratch scratch;
  const ModelCatalog catalog = catalog_of(scratch);
  const Tensors tensors = random_tensors(latent_model(), WeightNaming::kShared, 6);
  write_tensors(scratch.path("in.safetensors"), tensors);
  const std::string out = scratch.path("out/");  // with a slash, as shells complete it
  convert({.in = scratch.path("in.safetensors"),
           .to = "hf",
           .out = out,
           .model = "latent",
           .most_file_bytes = 40'000},
          catalog);
  CHECK(fs::exists(out + "model.safetensors.index.json"));
  int files = 0;
  for (const auto& entry : fs::directory_iterator(out)) {
    if (entry.path().extension() != ".safetensors") continue;
    CHECK(fs::file_size(entry.path()) < 40'000 + 10'000);  // and the header
    ++files;
  }
  CHECK(files > 1);
  require_equal(tensors_in(out), tensors);
}

TEST_CASE("what cannot be converted is refused in one sentence, and nothing is written") {
  const Scratch scratch;
  const ModelCatalog catalog = catalog_of(scratch);
  write_tensors(scratch.path("in.safetensors"), random_tensors(latent_model(), WeightNaming::kShared, 7));
  const std::string in = scratch.path("in.safetensors"), out = scratch.path("out");
  const auto to = [&](const std::string& layout) {
    return fault({.in = in, .to = layout, .out = out, .model = "latent"}, catalog);
  };
  CHECK(to("megatron") == "--to: expected \"hf\" or degrees such as tp=2,pp=2,ep=4, found \"megatron\"");
  CHECK(
      to("tp=2,dp=2") ==
      "--to: expected \"hf\" or degrees such as tp=2,pp=2,ep=4, found \"tp=2,dp=2\": unknown degree \"dp\"");
  CHECK(to("tp=0") ==
        "--to: expected \"hf\" or degrees such as tp=2,pp=2,ep=4, found \"tp=0\": tp is an integer from 1 to "
        "1048576");
  CHECK(to("tp=3") == "--to tp=3: does not divide the 4 attention heads of latent");
  CHECK(to("ep=3") == "--to ep=3: does not divide the 8 experts of latent");
  CHECK(to("pp=4") == "--to pp=4: more stages than the 3 layers of latent");
  CHECK(fault({.in = scratch.path("none"), .to = "hf", .out = out, .model = ""}, catalog) ==
        scratch.path("none") + ": expected a checkpoint, found nothing");
  CHECK(fault({.in = in, .to = "hf", .out = out, .model = ""}, catalog) ==
        in + ": expected config.json beside the weights, found none: name the model with --model");
  CHECK(
      fault({.in = in, .to = "hf", .out = out, .model = "latnet"}, catalog) ==
      R"(unknown model "latnet" (did you mean "latent"?); `moebius list models` names all, and {"base": NAME, )"
      R"(...changes} describes another)");
  CHECK(fault({.in = in, .to = "hf", .out = out, .model = "grouped"}, catalog)
            .find("tensor \"model.layers.0.self_attn.") != std::string::npos);
  CHECK(fault({.in = scratch.path(""), .to = "hf", .out = out, .model = "latent"}, catalog) ==
        scratch.path("") +
            ": expected moebius-checkpoint.json, model.safetensors.index.json or model.safetensors, found "
            "none of them");
}

TEST_CASE("a directory with something in it is left alone") {
  const Scratch scratch;
  fs::create_directory(scratch.path("out"));
  scratch.write("out/precious", "x");
  CHECK_THROWS_WITH(NewDirectory(scratch.path("out")),
                    scratch.path("out") + ": expected a new or empty directory, found something there");
  CHECK(text_of(scratch.path("out/precious")) == "x");
}

TEST_CASE("a directory that is replaced stands aside under a name that nobody has") {
  const Scratch scratch;
  for (const char* name : {"out", "out.old"}) {
    fs::create_directory(scratch.path(name));
    scratch.write(std::string(name) + "/precious", name);
  }
  NewDirectory directory(scratch.path("out"), {.replace = true});
  directory.commit();
  CHECK(fs::is_empty(scratch.path("out")));
  CHECK(text_of(scratch.path("out.old/precious")) == "out.old");
  CHECK_FALSE(fs::exists(scratch.path("out.old.2")));
}

TEST_CASE("a checkpoint whose files are not what the index says is refused") {
  const Scratch scratch;
  const ModelCatalog catalog = catalog_of(scratch);
  write_tensors(scratch.path("in.safetensors"), random_tensors(grouped_model(), WeightNaming::kShared, 8));
  const std::string cut = scratch.path("cut");
  convert({.in = scratch.path("in.safetensors"), .to = "tp=2", .out = cut, .model = "grouped"}, catalog);
  fs::copy_file(cut + "/rank-00001.safetensors", cut + "/rank-00000.safetensors",
                fs::copy_options::overwrite_existing);
  // What is not cut stands in the first file only.
  CHECK_THROWS_WITH(Checkpoint(cut),
                    cut +
                        "/rank-00000.safetensors: tensor \"model.layers.0.input_layernorm.weight\": "
                        "expected BF16 [32] as moebius-checkpoint.json says, found none");
}

TEST_CASE("an interrupted conversion with a journal goes on with the files that it had not finished") {
  const Scratch scratch;
  CheckpointIndex index;
  index.files = {"one.safetensors", "two.safetensors"};
  index.weights["a"] = {.type = StoredType::kBf16, .shape = {2, 2}, .axis = 0, .shards = {{0, 0, 2}}};
  index.weights["b"] = {.type = StoredType::kBf16, .shape = {2, 2}, .axis = 0, .shards = {{1, 0, 2}}};
  std::string read_names;
  bool interrupt = true;
  const auto read = [&](const std::string& name, const Region&) {
    read_names += name;
    if (interrupt) std::raise(SIGINT);
    return Bytes(8, static_cast<std::byte>(name[0]));
  };
  const auto write = [&](const std::string& journal) {
    write_checkpoint({.directory = scratch.path("out"), .plan = {.journal = journal}}, index, read);
  };
  CHECK_THROWS_WITH(write("words"),
                    "interrupted: the same command goes on with the files that are not finished");
  CHECK(read_names == "a");
  CHECK(fs::exists(scratch.path("out.partial/one.safetensors")));
  CHECK_FALSE(fs::exists(scratch.path("out")));
  SECTION("the same one") {
    interrupt = false;
    write("words");
    CHECK(read_names == "ab");
    CHECK_FALSE(fs::exists(scratch.path("out/journal")));
  }
  SECTION("another one begins anew") {
    interrupt = false;
    write("other words");
    CHECK(read_names == "aab");
  }
  SECTION("a finished file that was damaged is written again") {
    interrupt = false;
    fs::resize_file(scratch.path("out.partial/one.safetensors"), 60);
    write("words");
    CHECK(read_names == "aab");
  }
  CHECK_FALSE(fs::exists(scratch.path("out.partial")));
  const SafetensorsFile one(scratch.path("out/one.safetensors"));
  CHECK(one.bytes(*one.find("a"))[0] == static_cast<std::byte>('a'));
}

TEST_CASE("a conversion that fails leaves nothing behind, nor what it was interrupted at before") {
  const Scratch scratch;
  CheckpointIndex index;
  index.files = {"one.safetensors", "two.safetensors"};
  index.weights["a"] = {.type = StoredType::kBf16, .shape = {2, 2}, .axis = 0, .shards = {{0, 0, 2}}};
  index.weights["b"] = {.type = StoredType::kBf16, .shape = {2, 2}, .axis = 0, .shards = {{1, 0, 2}}};
  const auto read = [&](const std::string& name, const Region&) {
    if (name == "b") throw run_error("two.safetensors: cannot be written: No space left on device");
    return Bytes(8);
  };
  CHECK_THROWS_WITH(
      write_checkpoint({.directory = scratch.path("out"), .plan = {.journal = "words"}}, index, read),
      "two.safetensors: cannot be written: No space left on device");
  CHECK(fs::is_empty(scratch.path("")));
}

TEST_CASE("an interrupted writing without a journal leaves nothing behind") {
  const Scratch scratch;
  CheckpointIndex index;
  index.files = {"model.safetensors"};
  for (const char* name : {"a", "b"})
    index.weights[name] = {.type = StoredType::kBf16, .shape = {2, 2}, .axis = 0, .shards = {{0, 0, 2}}};
  const auto read = [](const std::string&, const Region&) {
    std::raise(SIGINT);
    return Bytes(8);
  };
  CHECK_THROWS_WITH(write_checkpoint({.directory = scratch.path("out")}, index, read),
                    "interrupted: nothing was written");
  CHECK(fs::is_empty(scratch.path("")));
}

TEST_CASE("a run that was interrupted before its checkpoint is written knows it afterwards") {
  const Scratch scratch;
  CheckpointIndex index;
  index.files = {"model.safetensors"};
  index.weights["a"] = {.type = StoredType::kBf16, .shape = {2, 2}, .axis = 0, .shards = {{0, 0, 2}}};
  const Interruption of_run;
  std::raise(SIGINT);
  write_checkpoint({.directory = scratch.path("out")}, index,
                   [](const std::string&, const Region&) { return Bytes(8); });
  CHECK(fs::exists(scratch.path("out/model.safetensors")));
  CHECK(of_run.came());
}

}  // namespace moebius::test
