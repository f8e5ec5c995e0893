#include "workloads/command_line/manual.h"

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/version.h"

namespace moebius {

namespace {

using Commands = std::vector<Command>;

bool is_flag(const CommandOption& option) {
  return std::holds_alternative<bool*>(option.target);
}

bool is_positional(const CommandOption& option) {
  return option.name.front() != '-';
}

// What troff would take for a request or an escape.
std::string troff(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\\')
      plain += "\\\\";
    else if (c == '-')
      plain += "\\-";
    else if (c == '\'')
      plain += "\\(aq";
    else
      plain += c;
  }
  return plain;
}

// Inside '...' of a shell; zsh's descriptions also end at a bracket or colon.
std::string shell(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else if (c == '[' || c == ']' || c == ':')
      quoted += std::string("\\") + c;
    else
      quoted += c;
  }
  return quoted;
}

std::string usage(const Command& command) {
  std::string text;
  for (const CommandOption& option : command.options) {
    if (!is_positional(option)) continue;
    const bool many = std::holds_alternative<std::vector<std::string>*>(option.target);
    const std::string name = option.name + (many ? "..." : "");
    text += option.required ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string words(const Commands& commands) {
  std::string text;
  for (const Command& command : commands) text += (text.empty() ? "" : " ") + command.name;
  return text;
}

std::string option_words(const Command& command) {
  std::string text = "--help";
  for (const CommandOption& option : command.options)
    if (!is_positional(option)) text += " " + option.name;
  return text;
}

std::string manual_of(const Command& command) {
  std::string text =
      fmt::format(".SS moebius {}{}\n{}.\n", troff(command.name), troff(usage(command)), troff(command.help));
  for (const CommandOption& option : command.options) {
    const char* value = is_flag(option) || is_positional(option) ? "" : " \\fIVALUE\\fR";
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", troff(option.name), value, troff(option.help));
  }
  return text;
}

std::string zsh_of(const Command& command) {
  std::string text = fmt::format("    {})\n      _arguments '--help[what it takes]'", command.name);
  for (const CommandOption& option : command.options) {
    const std::string values =
        option.values.empty() ? "_files" : fmt::format("({})", fmt::join(option.values, " "));
    if (is_positional(option) && !option.values.empty())
      text += fmt::format(" \\\n        '1:value:{}'", values);
    if (is_positional(option)) continue;
    text += fmt::format(" \\\n        '*{}[{}]{}'", option.name, shell(option.help),
                        is_flag(option) ? "" : ":value:" + values);
  }
  return text + " \\\n        '*:file:_files' ;;\n";
}

// What may stand behind an option, and elsewhere what the command itself takes: words, and names of this
// machine's catalogs. Where neither is known files may.
std::string bash_values(const Command& command) {
  std::string text, files;
  const auto add = [&](const std::string& behind, const CommandOption& option) {
    text += fmt::format("    \"{} \"{})", command.name, behind);
    if (!option.values.empty()) text += fmt::format(" values=\"{}\"", fmt::join(option.values, " "));
    if (!option.catalogs.empty())
      text +=
          fmt::format("{} kinds=\"{}\"", option.values.empty() ? "" : ";", fmt::join(option.catalogs, " "));
    text += " ;;\n";
  };
  const auto has_words = [](const CommandOption& option) {
    return !option.values.empty() || !option.catalogs.empty();
  };
  for (const CommandOption& option : command.options) {
    if (is_positional(option) || is_flag(option)) continue;
    if (has_words(option))
      add(option.name, option);
    else
      files += fmt::format("{}\"{} {}\"", files.empty() ? "" : "|", command.name, option.name);
  }
  if (!files.empty()) text += fmt::format("    {}) ;;\n", files);
  for (const CommandOption& option : command.options)
    if (is_positional(option) && has_words(option)) add("*", option);
  return text;
}

}  // namespace

std::string manual_page(const Commands& commands) {
  std::string text = fmt::format(
      ".TH MOEBIUS 1 \"\" \"moebius {}\" \"User Commands\"\n.SH NAME\nmoebius \\- simulates "
      "Mixture\\-of\\-Experts on any cluster and executes the same schedules\n.SH SYNOPSIS\n.B moebius\n"
      "\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n.br\n.B moebius\n\\fICOMMAND\\fR \\-\\-help\n.SH COMMANDS\n",
      kVersion);
  for (const Command& command : commands) text += manual_of(command);
  return text +
         ".SH EXIT STATUS\n0 done; 1 the run or an expectation failed; 2 the input is wrong, and one "
         "sentence "
         "says where.\n";
}

std::string bash_completion(const Commands& commands) {
  std::string text = fmt::format(
      "# bash completion of moebius {}\n_moebius() {{\n  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" "
      "before=\"${{COMP_WORDS[COMP_CWORD-1]}}\" options= values= kinds= kind\n"
      "  if [ \"$before\" = = ]; then before=\"${{COMP_WORDS[COMP_CWORD-2]}}\"; fi\n"
      "  if [ \"$word\" = = ]; then word=; fi\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"{} --help --version\" -- "
      "\"$word\"))\n    return\n  fi\n  case \"${{COMP_WORDS[1]}}\" in\n",
      kVersion, words(commands));
  for (const Command& command : commands)
    text += fmt::format("    {}) options=\"{}\" ;;\n", command.name, option_words(command));
  text += "  esac\n  case \"${COMP_WORDS[1]} $before\" in\n";
  for (const Command& command : commands) text += bash_values(command);
  // The names of the catalogs are those of this machine's binary.
  text +=
      "  esac\n  for kind in $kinds; do\n"
      "    values+=\" $(\"${COMP_WORDS[0]}\" list $kind 2>/dev/null | awk 'NR > 1 { print $1 }')\"\n"
      "  done\n";
  return text +
         "  case \"$word\" in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
         "       [ -n \"$COMPREPLY\" ] || COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "  esac\n}\ncomplete -o filenames -F _moebius moebius\n";
}

std::string zsh_completion(const Commands& commands) {
  std::string text =
      fmt::format("#compdef moebius\n# zsh completion of moebius {}\nlocal -a commands=(\n", kVersion);
  for (const Command& command : commands)
    text += fmt::format("  '{}:{}'\n", command.name, shell(command.help));
  text +=
      ")\nif (( CURRENT == 2 )); then\n  _describe command commands\nelse\n  local command=$words[2]\n  "
      "shift words; (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const Command& command : commands) text += zsh_of(command);
  return text + "  esac\nfi\n";
}

Command help_command(const Commands& commands) {
  CommandOption of{.name = "COMMAND", .target = {}, .help = "what it takes; without one, all commands"};
  for (const Command& command : commands) of.values.push_back(command.name);
  for (const char* last : {"help", "manual"}) of.values.emplace_back(last);
  return {"help", "say what a command does and takes", {std::move(of)}, [] { return 0; }};
}

Command manual_command(const Commands& commands) {
  enum class Form { kMan, kBash, kZsh };
  const auto form = std::make_shared<Form>();
  static const std::vector<std::pair<std::string, Form>> kForms{
      {"man", Form::kMan}, {"bash", Form::kBash}, {"zsh", Form::kZsh}};
  CommandOption as =
      choice("FORM", *form, kForms, "man: the manual page; bash, zsh: the completion of that shell");
  as.required = true;
  Command own{"manual", "print the manual page, or a shell's completion", {std::move(as)}, {}};
  Commands all = commands;
  all.push_back(own);
  own.run = [all = std::move(all), form] {
    switch (*form) {
      case Form::kMan:
        print(manual_page(all));
        break;
      case Form::kBash:
        print(bash_completion(all));
        break;
      case Form::kZsh:
        print(zsh_completion(all));
        break;
    }
    return 0;
  };
  return own;
}

}  // namespace moebius
