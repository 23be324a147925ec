// What a user's program needs of an installed ddf: its headers, and a library that links. Touches no network.
#include <ddf/ddf.hpp>

#include <cstdio>

int main() {
  ddf::publisher_options to;
  to.group = "not a group";
  ddf::subscriber_options from;
  from.group = to.group;
  const auto publisher = ddf::publisher::open(to);
  const auto subscriber = ddf::subscriber::open(from);
  if (publisher || subscriber) { return 1; }
  std::printf("ddf %s: %s\n", ddf::version(), ddf::describe(publisher.error()).c_str());
  return publisher.error().code == ddf::errc::invalid_argument ? 0 : 1;
}
