// The standard streams: what is written to them arrives, or the exit code says so.
#pragma once
#include <string>
#include <string_view>

namespace ddf::tools {

/// Opens what the caller left closed among descriptors 0 to 2, so that no file or socket of ours becomes one of
/// them, and ignores SIGPIPE. Writing to a stream that was closed still fails. Call it first in main.
void guard_standard_streams();

/// Writes all of `text` to standard output, at once. Failures are remembered for `finish_output`.
void write_output(std::string_view text);
/// The same for standard error, where failures have nowhere to be told.
void write_error(std::string_view text);

/// Output: whether everything written to standard output arrived; if not, standard error says why.
bool finish_output(const std::string& program);

}  // namespace ddf::tools
