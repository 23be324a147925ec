// The limit a machine sets to multicast over kernel UDP sockets: data moves, and there is no protocol at all.
//
//   raw_multicast send    --object FILE --receivers N --ledger FILE ...
//   raw_multicast receive --size BYTES --index I --ledger FILE [--output FILE] [--store file|prefault|discard] ...
//   both: --group ADDRESS --port P --interface ADDRESS --payload BYTES [--calls batched|single] [--window BYTES] [--digest none|xxh3]
//
// What a protocol does with packets, the ledger does for free: a file in shared memory (so all hosts are on one
// machine) where each receiver notes how many segments it has taken. The sender never runs more than a window ahead
// of the slowest, so no socket buffer overflows and nothing is lost. At a full window it sleeps until the slowest has
// taken half of it: waking by timer every few microseconds cost a third of the sender's time. The file exists before
// either starts: zeros, 64 bytes and 64 for each receiver.
//
// batched  send with UDP_SEGMENT (GSO), 8 such packets a sendmmsg; receive with UDP_GRO and recvmmsg
// single   one datagram a call on both sides, as the common tools do
// file     gathered pwritev into a new file     prefault  into a mapped file whose pages exist before the transfer
// discard  counted, not kept
// xxh3     each MiB is also digested as it comes, as whoever verifies has to
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#if __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // the fastest code for this processor
#else
#include <xxhash.h>
#endif

namespace {

constexpr std::uint32_t data_mark = 0x64617461, end_mark = 0x656e6421;
constexpr int end_repeats = 10, ends_to_believe = 4;  // an end may overtake data that waits on another CPU
constexpr std::size_t segments_per_packet_max = 64, packet_bytes_max = 65'000, packets_per_send = 8;

struct segment_header {
  std::uint32_t mark, index;
};

struct alignas(64) ledger_line {
  std::atomic<std::uint64_t> segments;  // a receiver's: taken; the first line's: what the sender sleeps for, 0 = awake
  std::atomic<std::uint32_t> turn;      // the first line's: changes to wake the sender
};

struct options {
  std::string object, output, ledger, group = "239.88.0.1", interface, store = "file", calls = "batched", digest = "none";
  std::size_t payload = 1464, size = 0, window = 4'000'000;
  int port = 5999, receivers = 1, index = 0;
  bool single() const { return calls == "single"; }
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(2);
}

int checked(int value, const char* what) {
  if (value < 0) fail(what);
  return value;
}

void rest(long nanoseconds) {
  const timespec t{0, nanoseconds};
  nanosleep(&t, nullptr);
}

// The lines of the ledger: the sender's, then each receiver's.
ledger_line* map_ledger(const options& o, int receivers) {
  const int file = checked(open(o.ledger.c_str(), O_RDWR), o.ledger.c_str());
  void* at = mmap(nullptr, static_cast<std::size_t>(receivers + 1) * sizeof(ledger_line), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) fail("map the ledger");
  return static_cast<ledger_line*>(at);
}

sockaddr_in group_address(const options& o) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<std::uint16_t>(o.port));
  inet_pton(AF_INET, o.group.c_str(), &a.sin_addr);
  return a;
}

ip_mreqn membership(const options& o) {
  ip_mreqn m{};
  m.imr_multiaddr = group_address(o).sin_addr;
  inet_pton(AF_INET, o.interface.c_str(), &m.imr_address);
  return m;
}

void set(int s, int level, int name, int value, const char* what) {
  checked(setsockopt(s, level, name, &value, sizeof value), what);
}

std::uint64_t slowest(const ledger_line* ledger, int receivers) {
  std::uint64_t least = UINT64_MAX;
  for (int i = 1; i <= receivers; ++i) least = std::min(least, ledger[i].segments.load());
  return least;
}

void sleep_until_taken(ledger_line* ledger, int receivers, std::uint64_t segments) {
  ledger[0].segments = segments;
  for (;;) {
    const std::uint32_t turn = ledger[0].turn;
    if (slowest(ledger, receivers) >= segments) break;
    const timespec patience{0, 10'000'000};
    syscall(SYS_futex, &ledger[0].turn, FUTEX_WAIT, turn, &patience, nullptr, 0);
  }
  ledger[0].segments = 0;
}

void note_taken(ledger_line* ledger, int index, std::uint64_t segments) {
  const std::uint64_t before = ledger[index + 1].segments.exchange(segments), wanted = ledger[0].segments;
  if (wanted == 0 || before >= wanted || segments < wanted) return;
  ++ledger[0].turn;
  syscall(SYS_futex, &ledger[0].turn, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// One UDP packet as given to the kernel: up to 64 segments, each a header of ours and a piece of the object.
struct packet {
  std::array<segment_header, segments_per_packet_max> headers;
  std::array<iovec, 2 * segments_per_packet_max> pieces;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control;
};

int send(const options& o) {
  const int file = checked(open(o.object.c_str(), O_RDONLY), o.object.c_str());
  struct stat status{};
  checked(fstat(file, &status), "stat");
  const auto size = static_cast<std::size_t>(status.st_size);
  auto* object = static_cast<char*>(mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0));
  if (object == MAP_FAILED) fail("map the object");
  ledger_line* ledger = map_ledger(o, o.receivers);

  const int s = checked(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  const auto to = group_address(o);
  const auto via = membership(o);
  checked(setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof via), "IP_MULTICAST_IF");
  set(s, SOL_SOCKET, SO_SNDBUF, 4 << 20, "SO_SNDBUF");
  set(s, IPPROTO_IP, IP_MULTICAST_LOOP, 0, "IP_MULTICAST_LOOP");
  checked(connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to), "connect");

  const std::uint64_t segments = (size + o.payload - 1) / o.payload;
  const std::size_t datagram = o.payload + sizeof(segment_header);
  const std::size_t per_packet = o.single() ? 1 : std::clamp(packet_bytes_max / datagram, std::size_t{1}, segments_per_packet_max);
  const std::uint64_t window = std::max(o.window / o.payload, 2 * per_packet);  // in segments
  const std::size_t packets_max = o.single() ? 1 : std::clamp(window / 2 / per_packet, std::size_t{1}, packets_per_send);

  std::vector<packet> packets(packets_max);
  std::vector<mmsghdr> messages(packets_max);
  std::uint64_t next = 0, waits = 0;
  while (next < segments) {
    std::size_t made = 0;
    for (; made < packets_max && next < segments; ++made) {
      packet& p = packets[made];
      std::size_t held = 0;
      for (; held < per_packet && next < segments; ++held, ++next) {
        const std::size_t offset = next * o.payload;
        p.headers[held] = {data_mark, static_cast<std::uint32_t>(next)};
        p.pieces[2 * held] = {&p.headers[held], sizeof(segment_header)};
        p.pieces[2 * held + 1] = {object + offset, std::min(o.payload, size - offset)};
      }
      msghdr& m = messages[made].msg_hdr;
      m = {};
      m.msg_iov = p.pieces.data();
      m.msg_iovlen = 2 * held;
      if (held > 1) {
        m.msg_control = p.control.data();
        m.msg_controllen = p.control.size();
        cmsghdr* c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
        const auto length = static_cast<std::uint16_t>(datagram);
        std::memcpy(CMSG_DATA(c), &length, sizeof length);
      }
    }
    if (next > slowest(ledger, o.receivers) + window) {
      sleep_until_taken(ledger, o.receivers, next - window / 2);
      ++waits;
    }
    for (std::size_t sent = 0; sent < made;) {
      const int n = o.single() ? (sendmsg(s, &messages[0].msg_hdr, 0) < 0 ? -1 : 1)
                               : sendmmsg(s, &messages[sent], static_cast<unsigned>(made - sent), 0);
      if (n > 0) {
        sent += static_cast<std::size_t>(n);
      } else if (errno == ENOBUFS || errno == EAGAIN) {
        rest(20'000);
      } else {
        fail("send");
      }
    }
  }
  const segment_header end{end_mark, static_cast<std::uint32_t>(segments)};
  for (int i = 0; i < end_repeats; ++i) {
    (void)!write(s, &end, sizeof end);
    rest(2'000'000);
  }
  std::printf("sent %zu bytes in %llu segments, waited %llu times\n", size, static_cast<unsigned long long>(segments),
              static_cast<unsigned long long>(waits));
  return 0;
}

// Where segments go. Those that follow each other in the object become one pwritev.
class sink {
 public:
  explicit sink(const options& o) : payload_(o.payload), seen_((o.size + o.payload - 1) / o.payload) {
    if (o.digest == "xxh3") XXH3_128bits_reset(digest_ = XXH3_createState());
    if (o.store == "discard") return;
    const int file = checked(open(o.output.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600), o.output.c_str());
    checked(ftruncate(file, static_cast<off_t>(o.size)), "ftruncate");
    if (o.store == "file") {
      file_ = file;
      return;
    }
    void* at = mmap(nullptr, o.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) fail("map the output");
    map_ = static_cast<char*>(at);
    std::memset(map_, 0, o.size);
  }

  void take(const char* datagram, std::size_t length) {
    segment_header h;
    if (length < sizeof h) return;
    std::memcpy(&h, datagram, sizeof h);
    if (h.mark == end_mark) ++ends_;
    if (h.mark != data_mark || h.index >= seen_.size() || seen_[h.index]) return;
    seen_[h.index] = 1;
    ++taken_;
    const char* bytes = datagram + sizeof h;
    const std::size_t n = length - sizeof h;
    if (digest_) {
      XXH3_128bits_update(digest_, bytes, n);
      if ((digested_ += n) >= 1 << 20) {
        folded_ ^= XXH3_128bits_digest(digest_).low64;
        XXH3_128bits_reset(digest_);
        digested_ = 0;
      }
    }
    if (map_) std::memcpy(map_ + h.index * payload_, bytes, n);
    if (file_ < 0) return;
    if (pending_ == run_.size() || h.index != first_ + pending_) flush();
    if (pending_ == 0) first_ = h.index;
    run_[pending_++] = {const_cast<char*>(bytes), n};
  }

  void flush() {
    if (pending_ && pwritev(file_, run_.data(), static_cast<int>(pending_), static_cast<off_t>(first_ * payload_)) < 0) fail("pwritev");
    pending_ = 0;
  }

  std::uint64_t taken() const { return taken_; }
  std::uint64_t folded() const { return folded_; }
  bool complete() const { return taken_ == seen_.size(); }
  bool over() const { return complete() || ends_ >= ends_to_believe; }

 private:
  std::size_t payload_;
  std::vector<std::uint8_t> seen_;
  std::uint64_t taken_ = 0;
  int ends_ = 0, file_ = -1;
  char* map_ = nullptr;
  std::array<iovec, 1024> run_;
  std::size_t pending_ = 0, first_ = 0;
  XXH3_state_t* digest_ = nullptr;
  std::size_t digested_ = 0;
  std::uint64_t folded_ = 0;
};

std::size_t segment_length(msghdr& m, std::size_t whole) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO) continue;
    int length = 0;
    std::memcpy(&length, CMSG_DATA(c), sizeof length);
    return static_cast<std::size_t>(length);
  }
  return whole;
}

int receive(const options& o) {
  sink out(o);
  ledger_line* ledger = map_ledger(o, o.index + 1);
  const int s = checked(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  set(s, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
  set(s, SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20, "SO_RCVBUFFORCE");
  if (!o.single()) set(s, SOL_UDP, UDP_GRO, 1, "UDP_GRO");
  const auto at = group_address(o);
  checked(bind(s, reinterpret_cast<const sockaddr*>(&at), sizeof at), "bind");
  const auto join = membership(o);
  checked(setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join), "join");
  timeval patience{60, 0};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);

  constexpr std::size_t room = 65'536;
  const unsigned count = o.single() ? 1 : 8;
  std::vector<char> buffer(count * room);
  std::vector<iovec> pieces(count);
  std::vector<mmsghdr> messages(count);
  std::vector<std::array<char, 64>> controls(count);
  bool first = true;
  while (!out.over()) {
    for (unsigned i = 0; i < count; ++i) {
      pieces[i] = {&buffer[i * room], room};
      msghdr& m = messages[i].msg_hdr;
      m = {};
      m.msg_iov = &pieces[i];
      m.msg_iovlen = 1;
      m.msg_control = controls[i].data();
      m.msg_controllen = controls[i].size();
    }
    int n = 0;
    if (o.single()) {
      const ssize_t length = recvmsg(s, &messages[0].msg_hdr, 0);
      n = length < 0 ? -1 : 1;
      messages[0].msg_len = static_cast<unsigned>(length);
    } else {
      n = recvmmsg(s, messages.data(), count, MSG_WAITFORONE, nullptr);
    }
    if (n < 0) {
      if (errno == EINTR) continue;
      break;  // silence
    }
    if (first) {
      first = false;
      patience = {1, 0};
      setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    for (unsigned i = 0; i < static_cast<unsigned>(n); ++i) {
      const std::size_t length = messages[i].msg_len, step = segment_length(messages[i].msg_hdr, length);
      const char* p = &buffer[i * room];
      for (std::size_t done = 0; done < length; done += step) out.take(p + done, std::min(step, length - done));
    }
    out.flush();
    note_taken(ledger, o.index, out.taken());
  }
  std::printf("took %llu segments of %zu bytes, digests %llx\n", static_cast<unsigned long long>(out.taken()), o.payload,
              static_cast<unsigned long long>(out.folded()));
  std::fflush(stdout);
  _exit(out.complete() ? 0 : 3);  // unmapping a large buffer is not part of the transfer
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_TIMERSLACK, 1);
  options o;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--object") o.object = value;
    else if (name == "--output") o.output = value;
    else if (name == "--ledger") o.ledger = value;
    else if (name == "--group") o.group = value;
    else if (name == "--interface") o.interface = value;
    else if (name == "--store") o.store = value;
    else if (name == "--calls") o.calls = value;
    else if (name == "--digest") o.digest = value;
    else if (name == "--payload") o.payload = std::stoul(value);
    else if (name == "--size") o.size = std::stoul(value);
    else if (name == "--window") o.window = std::stoul(value);
    else if (name == "--port") o.port = std::stoi(value);
    else if (name == "--receivers") o.receivers = std::stoi(value);
    else if (name == "--index") o.index = std::stoi(value);
    else return std::fprintf(stderr, "raw_multicast: unknown option %s\n", argv[i]), 2;
  }
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "send") return send(o);
  if (role == "receive") return receive(o);
  std::fprintf(stderr, "usage: raw_multicast send|receive --OPTION VALUE...\n");
  return 2;
}
