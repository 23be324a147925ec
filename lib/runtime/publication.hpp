// One publication under way: a sender engine bound to sockets, sources and the clock.
#pragma once
#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <ddf/publisher.hpp>
#include "lib/model/prng.hpp"
#include "lib/runtime/memory_lender.hpp"
#include "lib/runtime/rails.hpp"
#include "lib/runtime/session_source.hpp"
#include "lib/runtime/timer.hpp"
#include "lib/session/sender.hpp"
#include "lib/plan/delta_plan.hpp"
#include "lib/runtime/bulk_lanes.hpp"
#include "lib/store/base_store.hpp"
#include "lib/store/published.hpp"
#include "transports/udp/udp_socket.hpp"

namespace ddf {

inline constexpr std::size_t files_held_most = 64;   // open from the start of a publication, and of the version published last as the base of the next

struct sender_rail_socket {
  network_interface interface;
  std::unique_ptr<udp_socket> socket;
  std::unique_ptr<asio::posix::stream_descriptor> descriptor;   // does not own the file
  std::unique_ptr<bulk_sender> bulk;                            // DATA to the group
  std::unique_ptr<asio::posix::stream_descriptor> room;         // readable when `bulk` has room again; null: the socket is writable then
  time_point reopen_due{};
};

/// What publications of one publisher share. Used from the loop's thread only.
struct publisher_shell {
  asio::io_context& io;
  asio::thread_pool& workers;   // digest tables are made there, beside the loop
  publisher_options options;
  network_plan plan;
  std::vector<network_interface> all_interfaces;
  std::vector<sender_rail_socket> rails;
  memory_lender& lender;
  std::string scratch_folder;   // for deltas while they are made and sent; empty: memory
  published_store published;
  base_store bases;
  struct former_version {   // what this process published last under a name: its files are open still
    published_base described;
    std::shared_ptr<object_source> source;
  };
  std::map<std::string, former_version> former;
  std::function<bool(std::size_t rail)> reopen_rail;   // after its interface was re-created; false: still gone

  void log(log_level level, const std::string& text) const {
    if (options.log) options.log(level, text);
  }
};

struct delta_planning;   // what the worker is given, and what comes back

class publication final : public ticket, public std::enable_shared_from_this<publication> {
 public:
  /// `base_version`: of `base` in the descriptions, or of the objects themselves, the only one to make deltas from; 0: any.
  publication(publisher_shell& shell, std::vector<session_source::item> items, const publish_options& options, std::uint64_t base_version, std::vector<std::string> warnings);
  ~publication() override;

  // From any thread.
  report wait() override;
  bool wait_for(std::chrono::nanoseconds limit) override;
  progress snapshot() const override;
  void cancel() override;

  // From the loop's thread.
  void begin(std::function<void()> on_end);
  void handle_datagram(const path& from, std::span<const std::byte> bytes);
  void after_receive() { drive(); }

 private:
  void drive();
  void perform(sender_action& a);
  void perform(send_message& m);
  bool send_data(send_segments& s);    // false: the rest waits for the socket
  bool resume_data();
  void prepare(std::uint32_t object);
  void lend(const grant_segments& g);
  void plan();
  void planned(result<std::shared_ptr<delta_planning>> r);
  void send_failed(std::size_t rail, int error, std::size_t packets);
  void source_failed(const error& e);
  void end(const error& outcome);
  void claim_versions();
  void remember();
  void publish_snapshot(time_point t);
  report make_report(const error& outcome) const;
  bool use_loop() const;

  publisher_shell& shell_;
  session_source source_;
  publish_options options_;
  prng rng_;
  std::unique_ptr<sender> engine_;
  std::vector<manifest> manifests_;
  std::unique_ptr<lazy_timer> timer_;
  std::function<void()> on_end_;
  std::vector<std::string> warnings_;
  bool begun_ = false, ended_ = false, cancel_asked_ = false, driving_ = false;
  bool local_receivers_ = false, loop_decided_ = false;

  // A batch that the socket has not taken whole.
  std::optional<send_segments> pending_;
  std::vector<iovec> payloads_, headers_;
  std::vector<std::array<std::byte, data_header::wire_size>> header_bytes_;
  std::vector<std::size_t> targets_;       // rails still to be served, the first partly
  std::size_t pending_done_ = 0;
  bool waiting_ = false;

  std::uint64_t packet_headers_ = 0;       // bytes of IP and UDP headers sent
  std::map<int, std::uint64_t> send_errors_;
  double prepare_seconds_ = 0, plan_seconds_ = 0;
  plan_report plan_;
  const std::uint64_t base_version_;
  std::atomic<bool> abandon_digests_ = false;
  bool remembered_ = false;
  std::future<void> remembering_;          // on the worker

  mutable std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
  report report_;
  progress progress_;
  time_point snapshot_due_{};
  std::uint64_t snapshot_bytes_ = 0;
  time_point snapshot_at_{};
};

}  // namespace ddf
