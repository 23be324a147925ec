// What the programs exit with: the one place where an error becomes a number.
#pragma once
#include <ddf/error.hpp>

namespace ddf::tools {

enum exit_code : int {
  exit_complete = 0,      // everything complete and verified
  exit_failed = 1,        // a file, the network or a command failed
  exit_usage = 2,         // an option or a name is not usable
  exit_nobody = 3,        // no sender, or no receiver, in time
  exit_integrity = 4,     // what arrived, or what was read, is not what was announced
  exit_incomplete = 5,    // some receivers are not complete
  exit_refused = 6,       // authorisation or policy
  exit_interrupted = 130  // SIGINT or SIGTERM before everything was complete
};

constexpr exit_code exit_code_of(errc code) {
  switch (code) {
    case errc::ok: return exit_complete;
    case errc::invalid_argument: return exit_usage;
    case errc::no_sender:
    case errc::no_receiver: return exit_nobody;
    case errc::receiver_lost:
    case errc::incomplete: return exit_incomplete;
    case errc::integrity:
    case errc::stale_base:
    case errc::source_changed: return exit_integrity;
    case errc::refused: return exit_refused;
    case errc::interrupted: return exit_interrupted;
    case errc::io:
    case errc::network:
    case errc::sender_lost:
    case errc::too_large:
    case errc::no_multicast:
    case errc::unsupported:
    case errc::unknown_version: return exit_failed;
  }
  return exit_failed;
}

}  // namespace ddf::tools
