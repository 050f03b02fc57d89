#include "sim/process.hpp"

#include "sim/engine.hpp"

namespace trainyard::sim {

void ProcessHandle::stop() {
  if (process_ && !process_->is_done) process_->engine->stop_process(*process_);
}

bool ProcessHandle::done() const {
  return !process_ || process_->is_done;
}

Join ProcessHandle::join() const {
  check(process_ != nullptr, "a handle that is waited for refers to a process");
  return Join(process_);
}

const std::string& ProcessHandle::name() const {
  check(process_ != nullptr, "a handle that is asked for a name refers to a process");
  return process_->name;
}

bool Join::begin() {
  if (process_->is_done) return true;
  process_->joiners.push_back(*this);
  return false;
}

std::string Join::describe() const {
  return "the end of \"" + process_->name + '"';
}

}  // namespace trainyard::sim
