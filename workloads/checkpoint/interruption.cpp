#include "workloads/checkpoint/interruption.h"

#include "hw/error.h"

namespace moebius {
namespace {

volatile std::sig_atomic_t interrupted = 0;  // a handler is given nothing else to write to
volatile std::sig_atomic_t ignored = 0;

void note(int) {
  interrupted = ignored == 0;
}

}  // namespace

Interruption::Interruption() {
  before_ = interrupted;
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = note;
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

Interruption::~Interruption() {
  if (before_ != 0) interrupted = before_;  // one inside another leaves to that what was meant for it
  if (ignored != 0) return;
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

void Interruption::ignore_more() {
  ignored = 1;
}

bool Interruption::came() const {
  return interrupted != 0;
}

void Interruption::check() const {
  if (came()) throw run_error("interrupted: nothing was written");
}

}  // namespace moebius
