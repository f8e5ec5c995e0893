// The directory that a run leaves behind: report.json, report.txt, timeline.mtl, and network.svg, a heat map,
// where the network was sampled (timeline.counters); experts.svg and cluster.svg where there are such.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hw/document.h"
#include "hw/interrupted.h"
#include "hw/new_file.h"
#include "workloads/schedule/span_columns.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

struct RunTexts {
  std::string_view json, text;
  std::string experts = {};  // a picture of their loads; empty: none
  std::string queues = {};   // a picture of a cluster's cards over time; empty: none
};

// Directories that were made for results: what of them is empty when the object goes, or the process is
// interrupted, goes away.
class MadeDirectories {
 public:
  // The directory and its parents, as far as they are not there; run_error when that cannot be.
  explicit MadeDirectories(const std::string& directory);
  ~MadeDirectories();
  MadeDirectories(const MadeDirectories&) = delete;
  MadeDirectories& operator=(const MadeDirectories&) = delete;

 private:
  std::deque<std::string> made_;  // outermost first
  std::deque<UnfinishedFile> unfinished_;
};

// Creates `directory` (and its parents), to be kept until its files are there; run_error when it, or one of
// its files, could not be written. Empty: nothing.
[[nodiscard]] std::unique_ptr<MadeDirectories> require_directory(const std::string& directory,
                                                                 std::initializer_list<const char*> files);
[[nodiscard]] std::unique_ptr<MadeDirectories> require_run_directory(const std::string& directory);

// While files get their names there: whoever writes others with a lock waits, so that what stays is all of
// one run. Where the system knows no locks of directories there is none.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_;
};

// Creates it, too, and writes the files, after those of others who write a run there now.
void write_run(const std::string& directory, const RunTexts& texts, const Timeline& timeline);

// Where runs are written: the directory that was asked for, or one of this process that goes away with the
// object, or when the process is interrupted: itself and the runs of those names.
class RunDirectory {
 public:
  RunDirectory(const std::string& wanted, std::initializer_list<const char*> runs);  // empty: a temporary one
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool temporary_;
  std::deque<UnfinishedFile> unfinished_;  // of a temporary one
};

// The timeline of a run, given as its directory or as the file itself; input_error when there is none.
std::string timeline_path(const std::string& run);

// Its report.json, given as either, whether it is there or not.
std::string report_file(const std::string& run);

// Files of that run's directory, whether they are there or not: what other commands must not write over.
std::vector<std::string> files_of_run(const std::string& run);

// A run's report.json, by its file: whatever it is made of has the form that reports give it, else
// input_error.
Document load_report(const std::string& file);
// input_error where they say of themselves that they are of different runs: what was copied together, or
// written by one run over another's. `file`: the report's.
void require_one_run(const std::string& file, const Value& report, const SpanColumns& timeline);

}  // namespace moebius
