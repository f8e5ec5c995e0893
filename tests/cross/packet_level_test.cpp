// Flow completion times against a packet-level simulator's, row by row.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "sim/network/packet_table.h"

namespace moebius {
namespace {

const std::string kTable = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/data/packet_level.csv";

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double off(double predicted, double measured) {
  return std::abs(predicted / measured - 1);
}

bool is_single(const PacketRow& row) {
  return row.flows.size() == 1;
}

// The transport's constants stand in its description and in the single flows; no other row was used.
TEST_CASE("completion times are those of a packet-level simulator") {
  if (!std::filesystem::exists(kTable)) {
    WARN("skipped: no table of packet-level runs beside the sources");
    return;
  }
  const std::vector<PacketRow> rows = read_packet_table(kTable);
  std::vector<FlowFigures> predicted;
  std::vector<double> mean_errors, last_errors;
  for (const PacketRow& row : rows) {
    predicted.push_back(predict(row, {}, {}, 1));
    INFO(row.id);
    const double mean = off(predicted.back().mean, row.measured.mean);
    const double last = off(predicted.back().last, row.measured.last);
    CHECK(mean < (is_single(row) ? 0.005 : 0.06));
    CHECK(last < 0.25);
    if (is_single(row)) continue;
    mean_errors.push_back(mean);
    last_errors.push_back(last);
  }
  std::fputs(packet_table_text(rows, predicted).c_str(), stdout);
  CHECK(median(mean_errors) < 0.03);
  CHECK(median(last_errors) < 0.04);
}

// What the draw of the hashes does to a row is not an error of the model: 16 hosts have few ports to be lucky
// with, 128 have many.
TEST_CASE("other hashes change means of large runs by less than three per cent") {
  if (!std::filesystem::exists(kTable)) {
    WARN("skipped: no table of packet-level runs beside the sources");
    return;
  }
  for (const PacketRow& row : read_packet_table(kTable)) {
    if (row.id != "p17" && row.id != "p20" && row.id != "p22") continue;
    INFO(row.id);
    const double first = predict(row, {}, {}, 1).mean;
    for (const std::uint64_t seed : {2, 3, 4})
      CHECK(predict(row, {}, {}, seed).mean == Approx(first).epsilon(0.03));
  }
}

}  // namespace
}  // namespace moebius
