// What it costs in trust that a chip, or a weight matrix, was not measured: the kernels of a profile told
// without their own rows.
#pragma once

#include <string>
#include <vector>

#include "hw/profile.h"

namespace moebius {

// Relative errors against the values of a table.
struct NeighbourError {
  int values = 0;
  double median = 0;  // of absolute errors
  double p90 = 0;
  double bias = 0;  // median of signed errors: above zero, times come out too long
};

// The values of `table` as the donor's tables tell them for the chip of the table, `reference`: measured over
// modelled on the donor, times the model of the chip. Values of which the donor has nothing near are left
// out. At most about 2000 values, chosen by a hash.
NeighbourError told_by_neighbour(const ProfileTable& table, const Accelerator& reference,
                                 const Profile& donor);
// The same as the analytic model alone tells them.
NeighbourError told_by_model(const ProfileTable& table, const Accelerator& reference);

// The values of a site (a weight matrix, a layout of heads) as the other sites tell them; of about 40 sites.
// No values for tables of fewer than five sites.
NeighbourError told_by_other_sites(const ProfileTable& table, const Accelerator& reference);

// Markdown: chips told from the profile of a neighbour, kernel by kernel, beside the model alone. Pairs
// without profiles are passed over.
std::string neighbour_table(const std::vector<Profile>& profiles);
// Markdown: sites that are kept out, one line a table.
std::string site_table(const std::vector<Profile>& profiles);

}  // namespace moebius
