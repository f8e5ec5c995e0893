// How a command ends: what it throws is a sentence on standard error and an exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/command_line/command.h"

namespace moebius {

// 0 done, 1 the run failed, 2 the input is wrong. What was printed is on its way then.
int outcome_of(const std::function<int()>& run);

// "moebius: SENTENCE" to standard error; returns the exit code.
int told(int exit_code, std::string_view sentence);

// The same of words that ask for help: of a command that there is not, or of several. Empty: of one that
// there is, or they ask for none.
std::string wrong_topic(const std::vector<std::string>& words, const std::vector<Command>& commands);

// What is wrong with the command line, of these words behind the program's name, as a sentence; `error`: the
// parser's.
std::string wrong_command_line(const std::vector<std::string>& words, const std::vector<Command>& commands,
                               const std::string& error);

}  // namespace moebius
