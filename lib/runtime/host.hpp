// What the shell takes from the machine it runs on: time, randomness, names, folders.
#pragma once
#include <cstdint>
#include <string>
#include "lib/model/time.hpp"

namespace ddf {

time_point now();                        // steady; never the wall clock
std::uint64_t random_number();           // from the kernel; never zero
std::string host_name();
std::string default_state_directory();   // $XDG_STATE_HOME/ddf, or ~/.local/state/ddf, or empty when neither is known
std::uint64_t memory_bytes();            // of the machine

}  // namespace ddf
