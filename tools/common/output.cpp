#include "tools/common/output.hpp"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <ddf/error.hpp>

namespace ddf::tools {
namespace {

int output_errno = 0;  // a process has one standard output, and so one first failure of it

/// Output: 0, or why not all of `text` was written.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void guard_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free descriptor is this one. Of the wrong direction: a closed stream must not swallow what it gets.
    (void)::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
  }
  (void)std::signal(SIGPIPE, SIG_IGN);
}

void write_output(std::string_view text) {
  if (output_errno == 0) output_errno = write_all(STDOUT_FILENO, text);
}

void write_error(std::string_view text) { (void)write_all(STDERR_FILENO, text); }

bool finish_output(const std::string& program) {
  if (output_errno == 0) return true;
  write_error(fmt::format("{}: error: {}\n", program,
                          describe(error{errc::io, output_errno, "cannot write to standard output"})));
  return false;
}

}  // namespace ddf::tools
