// The unicast baseline: one TCP copy of the object to each receiver, all at once.
//
//   tcp_copies receive --output FILE [--port P]                          waits for one copy, then ends
//   tcp_copies send --object FILE --to ADDRESS,ADDRESS,... [--port P]    a process a receiver, sendfile
//   both: [--congestion NAME]
//
// The stream is the object and its end is the end of the connection; a broken one gives a short file, which whoever
// compares it sees. The receiver reads 1 MiB at a time and writes it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::string object, output, to, congestion;
int port = 5998;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(2);
}

long checked(long value, const char* what) {
  if (value < 0) fail(what);
  return value;
}

int make_socket() {
  const int s = static_cast<int>(checked(socket(AF_INET, SOCK_STREAM, 0), "socket"));
  if (!congestion.empty())
    checked(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, congestion.data(), static_cast<socklen_t>(congestion.size())), congestion.c_str());
  return s;
}

sockaddr_in address(const std::string& host) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<std::uint16_t>(port));
  if (!host.empty()) inet_pton(AF_INET, host.c_str(), &a.sin_addr);
  return a;
}

int receive() {
  const int listener = make_socket(), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto here = address("");
  checked(bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here), "bind");
  checked(listen(listener, 1), "listen");
  const int s = static_cast<int>(checked(accept(listener, nullptr, nullptr), "accept"));
  const int file = static_cast<int>(checked(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), output.c_str()));
  std::vector<char> buffer(1 << 20);
  while (const long got = checked(recv(s, buffer.data(), buffer.size(), 0), "recv"))
    for (long done = 0; done < got;) done += checked(write(file, buffer.data() + done, static_cast<std::size_t>(got - done)), "write");
  return 0;
}

int send_one(const std::string& host) {
  const int file = static_cast<int>(checked(open(object.c_str(), O_RDONLY), object.c_str()));
  struct stat status{};
  checked(fstat(file, &status), "stat");
  const int s = make_socket();
  const auto there = address(host);
  checked(connect(s, reinterpret_cast<const sockaddr*>(&there), sizeof there), "connect");
  for (off_t done = 0; done < status.st_size;)
    checked(sendfile(s, file, &done, static_cast<std::size_t>(status.st_size - done)), "sendfile");
  shutdown(s, SHUT_WR);
  char byte;
  return read(s, &byte, 1) == 0 ? 0 : 1;  // the receiver closes when it has everything
}

int send() {
  std::istringstream hosts(to);
  for (std::string host; std::getline(hosts, host, ',');)
    if (checked(fork(), "fork") == 0) _exit(send_one(host));
  int status = 0, failed = 0;
  while (wait(&status) > 0) failed |= status;
  return failed != 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--object") object = value;
    else if (name == "--output") output = value;
    else if (name == "--to") to = value;
    else if (name == "--congestion") congestion = value;
    else if (name == "--port") port = std::stoi(value);
    else return std::fprintf(stderr, "tcp_copies: unknown option %s\n", argv[i]), 2;
  }
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "send") return send();
  if (role == "receive") return receive();
  std::fprintf(stderr, "usage: tcp_copies send|receive --OPTION VALUE...\n");
  return 2;
}
