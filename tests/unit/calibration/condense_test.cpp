#include "workloads/calibration/condense.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "hw/catalog.h"
#include "workloads/calibration/csv.h"
#include "workloads/calibration/held_out.h"

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/process.h"

namespace moebius {
namespace {

Accelerator h800() {
  return Catalog().accelerator("h800-sxm");
}

TableDraft draft_of(std::vector<MeasuredRow> rows) {
  TableDraft draft;
  draft.table.name = "dense";
  draft.table.kinds = {"gemm"};
  draft.table.dtype = DType::kFp8;
  draft.table.stack = "lab-1";
  draft.table.cores = 132;
  draft.table.site_keys = {ProfileKey::kN, ProfileKey::kK};
  draft.table.axes = {{ProfileKey::kM, {}}};
  draft.rows = std::move(rows);
  return draft;
}

MeasuredRow row(double n, double k, double m, double us) {
  return {{n, k}, {m}, us, std::to_string(n) + "," + std::to_string(k) + "," + std::to_string(m)};
}

// A folder with such a table, and no other.
class TableFolder {
 public:
  explicit TableFolder(const std::string& text, const std::string& table = "infersim_gemm.csv") {
    std::filesystem::create_directories(path());
    scratch_.write("data/" + table, text);
  }
  std::filesystem::path path() const { return scratch_.path("data"); }

 private:
  test::Scratch scratch_;
};

TEST_CASE("errors of rows that were kept out have their sign, and figures that do not") {
  std::vector<double> errors;
  for (int i = 0; i < 40; ++i) errors.push_back(i < 30 ? -0.1 : 0.2 + 0.01 * i);
  const HeldOut held_out = held_out_of(errors);
  CHECK(held_out.rows == 40);
  CHECK(held_out.bias == Approx(-0.1));
  CHECK(held_out.median == Approx(0.1));
  CHECK(held_out.worst == Approx(0.59));
  REQUIRE(held_out.quantiles.size() == kHeldOutQuantiles);
  CHECK(held_out.quantiles.front() == Approx(std::log(0.9)));
  CHECK(held_out.quantiles.back() == Approx(std::log(1.59)));
  CHECK(held_out_of({}).quantiles.empty());
}

TEST_CASE("rows become a grid with holes where nothing was measured") {
  const ProfileTable table = lay_table(
      draft_of({row(4096, 7168, 128, 20), row(4096, 7168, 1024, 60), row(7168, 2048, 128, 11)}), h800());
  CHECK(table.sites == std::vector<std::vector<double>>{{4096, 7168}, {7168, 2048}});
  CHECK(table.axes[0].points == std::vector<double>{128, 1024});
  CHECK(table.microseconds[1] == 60);
  CHECK(std::isnan(table.microseconds[3]));
  CHECK(table.held_out.rows == 0);  // three rows are too few to keep any out
}

TEST_CASE("rows that repeat another, or lose to more work, are rejected with the reason") {
  const ProfileTable table = lay_table(
      draft_of({row(4096, 7168, 16, 30), row(4096, 7168, 16, 28), row(4096, 7168, 64, 20)}), h800());
  REQUIRE(table.rejected.size() == 2);
  CHECK(table.rejected[0].reason == "the shape stood in an earlier row");
  CHECK(table.rejected[1].reason == "over 2% slower than the same kernel with more work");
  CHECK(table.microseconds == std::vector<float>{20});
}

TEST_CASE("one row in five is kept out of the table and measures its error") {
  std::vector<MeasuredRow> rows;
  for (int i = 1; i <= 60; ++i) rows.push_back(row(4096, 7168, 128.0 * i, 15 + 6.0 * i));
  const ProfileTable table = lay_table(draft_of(rows), h800());
  CHECK(table.held_out.rows > 4);
  CHECK(table.held_out.rows < 24);
  CHECK(table.microseconds.size() + static_cast<std::size_t>(table.held_out.rows) == 60);
  CHECK(table.held_out.mean > 0);
  CHECK(table.held_out.worst >= table.held_out.mean);
}

TEST_CASE("a file with a wrong row is an error with its line") {
  const TableFolder bad("hardware,m,k,n,latency_us,mfu\nH800,16,2048,6144,abc,0.1\n");
  CHECK_THROWS_WITH(condense(bad.path().string(), h800()),
                    Catch::Contains("infersim_gemm.csv:2: latency_us: expected a number, found \"abc\""));
  const TableFolder ragged("hardware,m,k,n,latency_us,mfu\nH800,16,2048\n");
  CHECK_THROWS_WITH(condense(ragged.path().string(), h800()),
                    Catch::Contains("infersim_gemm.csv:2: expected 6 fields, found 3"));
  const TableFolder renamed("hardware,m,k,n,latency,mfu\nH800,16,2048,6144,9,0.1\n");
  CHECK_THROWS_WITH(condense(renamed.path().string(), h800()),
                    Catch::Contains("expected a column \"latency_us\""));
  const TableFolder other("hardware,m,k,n,latency_us,mfu\nH20,16,2048,6144,9,0.1\n");
  CHECK_THROWS_WITH(condense(other.path().string(), h800()),
                    Catch::Contains("no table of measured kernels has rows of h800-sxm"));
}

TEST_CASE("sizes of an attention kernel are three whole numbers above zero") {
  for (const char* shape : {"nan-8-128", "0-8-128", "32--8-128", "32-8", "32-8-128-1", "32-8-128x", ""}) {
    const TableFolder bad("hardware,kind,phase,shape_key,dtype,kv_dtype,batch,q_len,kv_len,latency_us,mfu\n"
                          "H800,gqa,decode," +
                              std::string(shape) + ",bf16,bf16,64,,1024,91,0.4\n",
                          "infersim_attention.csv");
    CHECK_THROWS_WITH(condense(bad.path().string(), h800()),
                      Catch::Contains("infersim_attention.csv:2: shape_key: expected three sizes such as "
                                      "\"32-8-128\", found \"" +
                                      std::string(shape) + "\""));
  }
}

TEST_CASE("of rows that no profile can hold none is written, and what stood there stays") {
  const TableFolder folder("hardware,m,k,n,latency_us,mfu\nH800,0,2048,6144,9,0.1\n");
  const test::Scratch scratch;
  const std::string path = scratch.write("p.json", "of before");
  CHECK_THROWS_WITH(save_profile(condense(folder.path().string(), h800()), path),
                    Catch::StartsWith("the rows of h800-sxm make a profile that cannot be read: ") &&
                        Catch::Contains("/tables/0/axes/0/points/0: expected a number from"));
  CHECK(test::text_of(path) == "of before");
}

TEST_CASE("the shipped H800 profile is what the published tables condense to, to the byte") {
  const std::string data = MOEBIUS_SOURCE_DIR "/../shared/data";
  if (!std::filesystem::exists(data + "/deepgemm.csv")) {
    WARN("skipped: the measured tables are not beside the project (../shared/data)");
    return;
  }
  const Profile condensed = condense(data, h800());
  std::ifstream shipped(MOEBIUS_SOURCE_DIR "/hw/profiles/h800-sxm.json", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(shipped)), std::istreambuf_iterator<char>());
  CHECK(to_json(condensed) == text);
  CHECK(text.size() < 1'000'000);
}

}  // namespace
}  // namespace moebius
