// The directory that a run leaves behind: report.json, report.txt, timeline.mtl, and network.svg, a heat map,
// where the network was sampled (timeline.counters); experts.svg and cluster.svg where there are such.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "hw/document.h"
#include "hw/new_file.h"
#include "workloads/schedule/span_columns.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

struct RunTexts {
  std::string_view json, text;
  std::string experts = {};  // a picture of their loads; empty: none
  std::string queues = {};   // a picture of a cluster's cards over time; empty: none
};

// Creates `directory` (and its parents); run_error when it, or one of its files, could not be written.
void require_directory(const std::string& directory, std::initializer_list<const char*> files);
void require_run_directory(const std::string& directory);

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
// object.
class RunDirectory {
 public:
  explicit RunDirectory(const std::string& wanted);  // empty: a temporary one
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool temporary_;
};

// The timeline of a run, given as its directory or as the file itself; input_error when there is none.
std::string timeline_path(const std::string& run);

// A run's report.json, by its file: whatever it is made of has the form that reports give it, else
// input_error.
Document load_report(const std::string& file);
// input_error where they say of themselves that they are of different runs: what was copied together, or
// written by one run over another's. `file`: the report's.
void require_one_run(const std::string& file, const Value& report, const SpanColumns& timeline);

}  // namespace moebius
