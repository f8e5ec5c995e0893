#include "workloads/command_line/command.h"

#include <cstdio>

namespace moebius {

CommandOptions joined(std::initializer_list<CommandOptions> parts) {
  CommandOptions all;
  for (const CommandOptions& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

CommandOption data_option(std::string& data) {
  return {"--data", &data, "directory with catalogs and profiles that extend or override the built-in ones"};
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace moebius
