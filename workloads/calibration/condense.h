// From tables of measured kernels, as they were published, to a profile (`moebius calibrate --from DIR --out
// PROFILE`). Deterministic: the same files give the same profile to the byte.
#pragma once

#include <string>
#include <vector>

#include "hw/profile.h"

namespace moebius {

// Why rows of prefill are left out.
inline constexpr const char* kOneToken = "prefill of one token: that is decode, which has its own table";

// One measured kernel.
struct MeasuredRow {
  std::vector<double> site;  // as ProfileTable::site_keys
  std::vector<double> at;    // as ProfileTable::axes
  double microseconds = 0;
  std::string text;  // the row as it stood in its file: decides whether it is kept out for testing
};

// A table before its grid is laid: `table` says everything but axis points, sites, values and held-out error.
struct TableDraft {
  ProfileTable table;
  std::vector<MeasuredRow> rows;
};

// Lays the grid. Rows that repeat an earlier one or are slower than one with more work in it are rejected,
// with the reason in the table. One row in five, chosen by a hash of its text, is kept out and tells the
// held-out error; a table of fewer than ten rows keeps all and has none. `reference` is the chip that was
// measured.
ProfileTable lay_table(TableDraft draft, const Accelerator& reference);

// Lays the grid of rows that are all good: none repeats, none is kept out.
ProfileTable lay_rows(TableDraft draft);

// One row in five is never built from, but tested with; of the others one in five is kept from trial fits.
// Both by a hash of the row's text.
bool is_kept_out(const MeasuredRow& row);
bool is_check_row(const MeasuredRow& row);

// The errors of a table on rows that it does not hold.
HeldOut test_table(const ProfileTable& table, const std::vector<MeasuredRow>& rows,
                   const Accelerator& reference);

// Reads those of deepgemm.csv, infersim_gemm.csv, infersim_grouped_gemm.csv, infersim_attention.csv and
// profile_data_train_ops.csv that stand in `directory`, and of gemm.csv.gz and *_attention.csv.gz in
// `directory`/kernels, and takes the rows of this accelerator (its id or an
// alias, in the column `hardware`), and those that stand in code (primus_turbo.h). input_error when there are
// none.
Profile condense(const std::string& directory, const Accelerator& accelerator);

// The same; without tables when no file has any row of this accelerator.
Profile find_kernels(const std::string& directory, const Accelerator& accelerator);

// Writes the profile to a temporary name beside `path` and renames it; run_error when that fails.
void save_profile(const Profile& profile, const std::string& path);

}  // namespace moebius
