#include "cli/interrupt.hpp"

#include <unistd.h>

#include <csignal>

#include "cli/command.hpp"

namespace trainyard::cli {

namespace {

// A signal handler has no other way to reach anything: the one mutable global of the program.
std::atomic<bool> interrupted{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<bool>::is_always_lock_free, "needed in a signal handler");

extern "C" void on_interrupt(int) {
  if (interrupted.exchange(true)) _exit(int(Exit::interrupted));
}

}  // namespace

const std::atomic<bool>& watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace trainyard::cli
