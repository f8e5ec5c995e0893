#include "viz/page/html.h"

#include <array>

#include <fmt/format.h>

namespace moebius::viz {

namespace {

struct Meaning {
  std::string_view word, meaning;
};

constexpr std::array kGlossary{
    Meaning{"TTFT", "time to first token: from a request's arrival to its first token"},
    Meaning{"TPOT", "time per output token: of a request, the mean over its tokens after the first"},
    Meaning{"ITL", "inter-token latency: each gap between two tokens of a request"},
    Meaning{"E2E", "end to end: from a request's arrival to its last token"},
    Meaning{"MFU", "model FLOPs utilisation: FLOPs of the model over the peak of the devices"},
    Meaning{"busbw", "bus bandwidth: what each rank's links carry, comparable between operations"},
    Meaning{"goodput", "requests a second that kept their class's TTFT and TPOT"},
    Meaning{"SLO attainment", "share of requests that kept their class's TTFT and TPOT"},
    Meaning{"exposed communication", "communication during which the device computes nothing"},
    Meaning{"hidden communication", "communication beside compute"},
    Meaning{"bubble", "a pipeline stage has nothing to do yet, or nothing any more"},
    Meaning{"waiting", "a member of a collective waits for the others"},
    Meaning{"makespan", "from the first op to the end of the last"},
    Meaning{"provenance", "where the figures come from: cost sources, versions, the schedule's hash"},
    Meaning{"detail",
            "how the network is simulated: alpha-beta (closed form), fluid (max-min shares), native"},
    Meaning{"peak memory", "of the fullest rank class, at its fullest moment"},
};

// One sheet for screens of any width, in the light, in the dark and on paper.
constexpr std::string_view kStyle = R"(
:root{--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--back:#fff;--card:#f6f8fa;--good:#1a7f37;--bad:#cf222e}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--back:#0d1117;--card:#161b22;--good:#3fb950;--bad:#f85149}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.2rem;max-width:70rem;font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--back)}
h1{font-size:1.5rem;line-height:1.2;margin:.2rem 0;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:1.8rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
p{margin:.4rem 0}
.soft{color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.6rem}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.5rem .7rem;min-width:0}
.tile b{display:block;font-size:1.25rem;overflow-wrap:anywhere}
.tile span{color:var(--soft);font-size:.85rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;min-width:50%}
th,td{text-align:left;padding:.25rem .7rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td+td,th+th{text-align:right;font-variant-numeric:tabular-nums}
.words td+td,.words th+th{text-align:left;overflow-wrap:anywhere;min-width:10rem}
.bar{display:flex;height:1.6rem;border-radius:.3rem;overflow:hidden;background:var(--card);border:1px solid var(--line);position:relative}
.bar i{display:block;min-width:0}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:.4rem 0;font-size:.85rem}
.key i{display:inline-block;width:.8rem;height:.8rem;border-radius:.15rem;margin-right:.35rem;vertical-align:-.1rem}
.row{display:grid;grid-template-columns:7rem 1fr 5.5rem;gap:.6rem;align-items:center;font-size:.9rem;margin:.2rem 0}
.row .track{background:var(--card);border-radius:.2rem;height:1rem;position:relative}
.row .track i{display:block;height:100%;border-radius:.2rem}
.row .end{text-align:right;font-variant-numeric:tabular-nums}
.limit{position:absolute;top:-.2rem;bottom:-.2rem;width:2px;background:var(--bad)}
.good{color:var(--good)}.bad{color:var(--bad)}
svg{display:block;max-width:none}
.fit svg{width:100%;height:auto;min-width:54rem}
abbr{text-decoration:underline dotted;cursor:help}
details{margin:.4rem 0}
summary{cursor:pointer}
@media print{body{max-width:none;font-size:11px}details>*{display:block}.scroll{overflow:visible}section{break-inside:avoid}}
)";

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '<')
      safe += "&lt;";
    else if (letter == '>')
      safe += "&gt;";
    else if (letter == '&')
      safe += "&amp;";
    else if (letter == '"')
      safe += "&quot;";
    else
      safe += letter;
  }
  return safe;
}

std::string term(std::string_view word) {
  for (const Meaning& known : kGlossary) {
    if (known.word == word)
      return fmt::format("<abbr title=\"{}\">{}</abbr>", escaped(known.meaning), escaped(word));
  }
  return escaped(word);
}

std::string section(std::string_view title, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", escaped(title), body);
}

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return "";
  std::string text = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : head) text += fmt::format("<th>{}</th>", cell);
  text += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += fmt::format("<td>{}</td>", cell);
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string page(std::string_view title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<link rel=\"icon\" "
      "href=\"data:,\">\n<title>{}</title>\n<style>{}</style></head>\n<body>\n{}</body></html>\n",
      escaped(title), kStyle, body);
}

}  // namespace moebius::viz
