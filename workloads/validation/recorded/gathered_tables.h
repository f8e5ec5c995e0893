// What tables of kernels and collectives say of the cost models, as sources of a record (accuracy/record.h).
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "workloads/accuracy/record.h"

namespace moebius {

// Kernels, by chip and stack: the rows that were kept out of the profiles' tables. Profiles keep the median,
// nine in ten and the worst of absolute errors: what lies between is taken as straight, signs as even.
std::vector<AccuracySource> gathered_kernels(const Catalog& catalog, const std::string& data);

// Collectives in a node (kernels/nccl.csv.gz, custom_allreduce.csv.gz) by chip and library, dispatch and
// combine by chip and table; rows that the constants were fitted to are calibration. Nothing of tables that
// are not in `from`.
std::vector<AccuracySource> gathered_collectives(const Catalog& catalog, const std::string& from);

}  // namespace moebius
