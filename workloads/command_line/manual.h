// The manual page and the shells' completions, made of the commands themselves: what `moebius --help` says
// and what is installed cannot differ.
#pragma once

#include <string>
#include <vector>

#include "workloads/command_line/command.h"

namespace moebius {

std::string manual_page(const std::vector<Command>& commands);  // troff, section 1
std::string bash_completion(
    const std::vector<Command>& commands);  // for share/bash-completion/completions/moebius
std::string zsh_completion(const std::vector<Command>& commands);  // for share/zsh/site-functions/_moebius

// `help [COMMAND]`: as a command, so that it is listed and has help of its own; its words are read as
// `COMMAND --help` (command.h). It knows the commands given, itself and `manual`.
Command help_command(const std::vector<Command>& commands);

// `manual man|bash|zsh`: prints one of them; it knows the commands given and itself.
Command manual_command(const std::vector<Command>& commands);

}  // namespace moebius
