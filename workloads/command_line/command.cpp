#include "workloads/command_line/command.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "hw/error.h"

namespace moebius {
namespace {

[[noreturn]] void cannot_print() {
  throw run_error(fmt::format("standard output: cannot be written: {}", std::strerror(errno)));
}

}  // namespace

CommandOptions joined(std::initializer_list<CommandOptions> parts) {
  CommandOptions all;
  for (const CommandOptions& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

CommandOption data_option(std::string& data) {
  return {"--data", &data, "directory with catalogs and profiles that extend or override the built-in ones"};
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) cannot_print();
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) cannot_print();
}

}  // namespace moebius
