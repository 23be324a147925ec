// What can go wrong, as a value. No exception crosses the public API.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace ddf {

enum class errc : std::uint8_t {
  ok = 0,
  invalid_argument,   // an option or a name is not usable; `what` names it and the cure
  io,                 // a file operation failed; `os` has the errno
  network,            // a socket operation failed; `os` has the errno
  no_sender,          // nobody published in time
  no_receiver,        // nobody joined in time
  sender_lost,        // the sender fell silent or closed the session early
  receiver_lost,      // a receiver fell silent or left
  incomplete,         // not complete by the deadline
  integrity,          // digests do not match
  source_changed,     // the file changed while it was sent
  refused,            // policy, budget or authorisation
  too_large,          // beyond a stated bound or the space that is free
  no_multicast,       // multicast was required and does not arrive
  interrupted,        // a signal or stop()
  unsupported,        // this build or this host cannot do it
  stale_base,         // a delta starts from another version than the one that is here
  unknown_version,    // this version is not here (any more)
};

/// The short name of a code, for JSON and logs: "sender_lost". Cost: O(1).
std::string_view name(errc code);

struct error {
  errc code = errc::ok;
  int os = 0;          // errno; 0 when there is none
  std::string what;    // one sentence: what was attempted, why it failed, what to do next
};

/// `what`, followed by the operating system's words for `os` when there is one.
std::string describe(const error& e);

template <class T>
using result = tl::expected<T, error>;

inline tl::unexpected<error> fail(errc code, std::string what, int os = 0) {
  return tl::unexpected<error>(error{code, os, std::move(what)});
}

}  // namespace ddf
