// What `validate` keeps: --record writes the errors of this run into a record, --recorded shows the one that
// ships,
// --write puts it into pages.
#pragma once

#include <string>
#include <vector>

#include "hw/catalog.h"
#include "workloads/accuracy/record.h"
#include "workloads/command_line/command.h"

namespace moebius {

struct RecordOptions {
  std::string record, from;
  std::vector<std::string> write;
  bool recorded = false;

  bool shows() const { return recorded || !write.empty(); }  // nothing is run
};
CommandOptions record_options(RecordOptions& options);

// --recorded: its tables. --write: puts the section "accuracy" or "accuracy-rows" into each page; of the
// record in
// --record, or the one that ships. Returns what there is to tell. Errors as write_section().
std::string shown_record(const RecordOptions& options);

std::string classes_text(std::vector<AccuracySource> sources);  // of this run

// Takes the sources of one run into the record.
class RecordKeeper {
 public:
  // Kernels and, of the tables in --from, collectives at once. Does nothing without --record.
  RecordKeeper(const RecordOptions& options, const Catalog& catalog, const std::string& data);
  void keep(std::vector<AccuracySource> sources);  // and writes the file

 private:
  const RecordOptions& options_;
};

}  // namespace moebius
