#include "real/alignment_command.h"

#include <memory>
#include <string>

#include "real/alignment.h"

namespace moebius {

Command align_command() {
  struct Files {
    std::string run, reference;
  };
  const auto files = std::make_shared<Files>();
  const auto body = [files] {
    const Alignment alignment = align(files->run, files->reference);
    print(to_text(alignment));
    return alignment.first_drift() == nullptr ? 0 : 1;
  };
  return {
      "align",
      "compare a run's activations with a reference, layer by layer",
      {{.name = "RUN", .target = &files->run, .help = "what run --dump-activations wrote", .required = true},
       {.name = "--reference",
        .target = &files->reference,
        .help = "activations of the same modules (safetensors)",
        .required = true}},
      body};
}

}  // namespace moebius
