// A file over NORM (RFC 5740) with libnorm, since Debian ships the library without programs.
//
//   norm_file send --object FILE --receivers N --interface NAME --rate MBIT [--segment BYTES]
//   norm_file receive --output FILE --id I --interface NAME        I: 1..N
//
// The sender adds receivers as acknowledging nodes, sets a watermark behind the file and ends when all have confirmed
// it. The receiver renames the file to its final name when it is complete and stays until it is stopped, to confirm.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <normApi.h>
#include <unistd.h>

namespace {

std::string object, output, interface;
int receivers = 1, id = 1, segment = 1400;
double rate_mbit = 400;

constexpr unsigned socket_bytes = 4u << 20, cache_bytes = 64u << 20;
constexpr unsigned short block_segments = 64, parity_segments = 0;
constexpr double grtt_s = 0.002;

int send(NormInstanceHandle instance, NormSessionHandle session) {
  NormSetCongestionControl(session, false);
  NormSetTxRate(session, rate_mbit * 1e6);
  NormSetGrttEstimate(session, grtt_s);
  NormSetGrttProbingInterval(session, 0.01, 1.0);
  NormSetTxCacheBounds(session, NormSize{4} << 30, 4, 16);
  if (!NormStartSender(session, static_cast<NormSessionId>(getpid()), cache_bytes, static_cast<UINT16>(segment),
                       block_segments, parity_segments))
    return 1;
  NormSetTxSocketBuffer(session, socket_bytes);
  for (int i = 1; i <= receivers; ++i) NormAddAckingNode(session, static_cast<NormNodeId>(i + 1));
  const NormObjectHandle file = NormFileEnqueue(session, object.c_str(), "o", 1);
  if (file == NORM_OBJECT_INVALID) return 1;
  NormSetWatermark(session, file, true);
  for (NormEvent event; NormGetNextEvent(instance, &event);) {
    if (event.type != NORM_TX_WATERMARK_COMPLETED) continue;
    if (NormGetAckingStatus(session, NORM_NODE_ANY) == NORM_ACK_SUCCESS) return 0;
    NormResetWatermark(session);
  }
  return 1;
}

int receive(NormInstanceHandle instance, NormSessionHandle session) {
  const auto slash = output.rfind('/');
  NormSetCacheDirectory(instance, slash == std::string::npos ? "./" : output.substr(0, slash + 1).c_str());
  NormSetDefaultUnicastNack(session, true);
  NormSetRxCacheLimit(session, 4);
  if (!NormStartReceiver(session, cache_bytes)) return 1;
  NormSetRxSocketBuffer(session, socket_bytes);
  for (NormEvent event; NormGetNextEvent(instance, &event);) {
    if (event.type == NORM_RX_OBJECT_ABORTED) return std::fputs("aborted\n", stderr), 1;
    if (event.type != NORM_RX_OBJECT_COMPLETED) continue;
    char name[4096] = {};
    NormFileGetName(event.object, name, sizeof name - 1);
    if (std::rename(name, output.c_str()) != 0) return std::perror(name), 1;
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--object") object = value;
    else if (name == "--output") output = value;
    else if (name == "--interface") interface = value;
    else if (name == "--receivers") receivers = std::stoi(value);
    else if (name == "--id") id = std::stoi(value);
    else if (name == "--segment") segment = std::stoi(value);
    else if (name == "--rate") rate_mbit = std::stod(value);
    else return std::fprintf(stderr, "norm_file: unknown option %s\n", argv[i]), 2;
  }
  const std::string role = argc > 1 ? argv[1] : "";
  if (role != "send" && role != "receive") return std::fprintf(stderr, "usage: norm_file send|receive --OPTION VALUE...\n"), 2;
  const bool sends = role == "send";
  const NormInstanceHandle instance = NormCreateInstance();
  const NormSessionHandle session = NormCreateSession(instance, "239.88.0.3", 6003, static_cast<NormNodeId>(sends ? 1 : id + 1));
  if (!interface.empty()) NormSetMulticastInterface(session, interface.c_str());
  NormSetGroupSize(session, static_cast<unsigned>(receivers < 2 ? 2 : receivers));
  const int status = sends ? send(instance, session) : receive(instance, session);
  _exit(status);  // the library's own threads take seconds to end
}
