#include <ddf/publisher.hpp>

#include <unistd.h>

#include <charconv>
#include <deque>
#include <thread>

#include "lib/model/object_name.hpp"
#include "lib/runtime/delta_planning.hpp"
#include "lib/runtime/publication.hpp"
#include "lib/store/descriptor_cache.hpp"
#include "lib/store/partial_name.hpp"

namespace ddf {

class publisher_impl final : public publisher {
 public:
  publisher_impl(const publisher_options& options, network_plan plan)
      : work_(asio::make_work_guard(io_)),
        workers_(1), lanes_(io_), lender_(lanes_), shell_{io_, workers_, options, std::move(plan), {}, {}, lender_, state_directory(options.state_directory), published_store(state_directory(options.state_directory)),
               base_store(state_directory(options.state_directory), options.keep), {}, [this](std::size_t r) { return reopen(r); }} {}

  ~publisher_impl() override {
    asio::post(io_, [this] {
      for (const auto& p : queue_) p->cancel();
      closing_ = true;
      if (queue_.empty()) io_.stop();
    });
    if (thread_.joinable()) thread_.join();
    workers_.join();   // what they post finds the loop stopped, and goes with it
  }

  result<void> open_sockets() {
    if (auto all = list_interfaces()) shell_.all_interfaces = std::move(*all);
    for (const network_interface& n : shell_.plan.interfaces.rails) {
      sender_rail_socket rail;
      rail.interface = n;
      shell_.rails.push_back(std::move(rail));
    }
    result<void> first;
    std::size_t opened = 0;
    for (std::size_t r = 0; r < shell_.rails.size(); ++r) {
      auto ok = open_rail(r);
      if (ok) ++opened;
      else {
        if (first) first = tl::unexpected(ok.error());
        const bool expected = shell_.plan.verbs && !shell_.plan.interfaces_named;   // few of a host's interfaces are an RDMA device's
        shell_.log(expected ? log_level::debug : log_level::warning, shell_.rails[r].interface.name + ": " + describe(ok.error()));
      }
    }
    if (opened == 0) return first;   // one bad interface does not stop the others
    if (shell_.plan.verbs) std::erase_if(shell_.rails, [](const sender_rail_socket& r) { return !r.bulk; });
    // Receivers that hear no multicast ask here.
    udp_socket::options o;
    o.ttl = shell_.plan.ttl;
    o.buffer_bytes = 1 << 20;
    auto query = udp_socket::open_group(shell_.plan.query, o);
    if (query) {
      query_ = std::move(*query);
      query_->tell_interface();
      for (const sender_rail_socket& r : shell_.rails) (void)query_->join(r.interface.index);
      query_descriptor_ = std::make_unique<asio::posix::stream_descriptor>(io_, ::dup(query_->fd()));
    } else {
      shell_.log(log_level::warning, "receivers cannot ask for this sender: " + describe(query.error()));
    }
    return {};
  }

  void run() {
    for (std::size_t r = 0; r < shell_.rails.size(); ++r) listen(r);
    listen_for_queries();
    running_ = true;
    thread_ = std::thread([this] { io_.run(); });
  }

  result<std::shared_ptr<ticket>> publish(const std::string& name, std::span<const part_view> parts, const publish_options& options) override {
    auto opened = open_memory(name, parts);
    if (!opened) return tl::unexpected(opened.error());
    std::vector<opened_source> sources;
    std::shared_ptr<object_source> former;
    if (!options.previous.empty()) {
      auto before = open_memory(name, options.previous);
      if (!before) return fail(errc::invalid_argument, "previous: " + before.error().what);
      if (before->description.parts != opened->description.parts) return fail(errc::invalid_argument, "previous: its parts have other names or sizes than those to be published");
      former = std::move(before->source);
    }
    sources.push_back(std::move(*opened));
    return start(std::move(sources), options, std::move(former));
  }

  result<std::shared_ptr<ticket>> publish_paths(std::span<const path_source> paths, const publish_options& options) override {
    if (!options.previous.empty()) return fail(errc::invalid_argument, "previous: is for objects in memory; of files the version before is found by itself, or by its copy (publisher_options::keep)");
    if (paths.empty()) return fail(errc::invalid_argument, "nothing to publish: name at least one file or folder");
    std::vector<opened_source> sources;
    auto descriptors = std::make_shared<descriptor_cache>(128);
    std::size_t held = 0;
    for (const path_source& p : paths) {
      auto opened = open_path(p, descriptors);
      if (!opened) return tl::unexpected(opened.error());
      // Files are open from now on, as far as they are few: one that is replaced while receivers are waited for is sent as it was.
      held += opened->description.parts.size();
      if (held <= files_held_most) (void)opened->source->check_open();
      sources.push_back(std::move(*opened));
    }
    return start(std::move(sources), options);
  }

 private:
  static std::string state_directory(const std::string& option) {
    if (option == "none") return {};
    const std::string base = option.empty() ? default_state_directory() : option;
    return base;
  }

  result<std::shared_ptr<ticket>> start(std::vector<opened_source> sources, const publish_options& options, std::shared_ptr<object_source> former = {}) {
    std::vector<session_source::item> items;
    std::vector<std::string> warnings;
    std::string base_name;
    std::uint64_t base_version = 0;
    if (options.base != "auto" && options.base != "none") {
      const auto at = options.base.rfind('@');
      const char* const begin = at == std::string::npos ? nullptr : options.base.data() + at + 1;
      const char* const end = options.base.data() + options.base.size();
      if (begin == nullptr || std::from_chars(begin, end, base_version).ptr != end || begin == end || base_version == 0)
        return fail(errc::invalid_argument, "base '" + printable(options.base) + "': give auto, none or NAME@VERSION, as in policy@41");
      base_name = options.base.substr(0, at);
      if (auto ok = check_object_name(base_name); !ok) return fail(errc::invalid_argument, "base: " + ok.error().what);
      const auto known = shell_.bases.versions(base_name);
      if (std::ranges::find(known, version_id{base_version}) == known.end()) {
        std::string have;
        for (const version_id v : known) have += (have.empty() ? "" : ", ") + std::to_string(v.value);
        return fail(errc::unknown_version, "base '" + printable(options.base) + "': this version was not published from here" + (have.empty() ? std::string(": nothing of that name was") : "; known are " + have));
      }
    }
    if (options.has_changed && sources.size() != 1) return fail(errc::invalid_argument, "changed: is said of one object, and " + std::to_string(sources.size()) + " are to be published: publish them one by one");
    catalogue all;
    for (opened_source& s : sources) {
      session_source::item item{std::move(s.description), std::move(s.source), {}, former};
      warnings.insert(warnings.end(), s.warnings.begin(), s.warnings.end());
      const std::string& name = item.description.name;
      if (has_partial_name(name))
        return fail(errc::invalid_argument, "'" + printable(name) + "': names of that form are for partial files only, and every receiver refuses them; give another one (mcsend --name)");
      item.description.consistent = options.consistent;
      if (base_name != item.description.name) item.description.base = base_name;
      constexpr std::uint64_t worth_looking = 1 << 20;
      if (options.base == "auto" && item.description.size() >= worth_looking && shell_.bases.versions(name).empty()) {
        item.description.base = resembling_object(shell_.bases, item.description, *item.source);
        if (!item.description.base.empty() && shell_.options.log) shell_.options.log(log_level::info, "'" + printable(name) + "' is new and resembles '" + printable(item.description.base) + "', which serves as its base");
      }
      if (options.version != 0) item.description.version = version_id{options.version};
      if (auto known = shell_.published.load(item.description.name)) {
        const digest identity = item.source->identity();
        const bool unchanged = identity != digest{} && known->identity == identity;
        if (unchanged) item.digests = std::move(known->digests);   // not read again
        if (options.consistent == consistency::immutable && !unchanged && identity != digest{})
          return fail(errc::refused, "'" + printable(name) + "' is immutable and was published as version " + std::to_string(known->version.value) + " with other content, or its file was touched since: publish it under another name");
        if (options.version == 0 && !unchanged && known->version.value == ~std::uint64_t(0))
          return fail(errc::invalid_argument, "'" + item.description.name + "' was published as the last version there is: give a version (mcsend --object-version), or another name");
        if (options.version == 0) item.description.version = version_id{known->version.value + (unchanged ? 0 : 1)};
        else if (options.version == known->version.value && !unchanged)
          warnings.push_back("version " + std::to_string(options.version) + " of '" + printable(name) + "' was published from here before, with other bytes or from a file that was touched since: who has that one may take this for the same");
        else if (options.version < known->version.value)
          warnings.push_back("version " + std::to_string(options.version) + " of '" + item.description.name + "' is older than version " + std::to_string(known->version.value) + ", which was published from here");
      }
      all.push_back(item.description);
      items.push_back(std::move(item));
    }
    if (auto ok = check_catalogue(all); !ok) return tl::unexpected(ok.error());
    auto p = std::make_shared<publication>(shell_, std::move(items), options, base_version, std::move(warnings));
    asio::post(io_, [this, p] {
      queue_.push_back(p);
      if (closing_) p->cancel();
      if (queue_.size() == 1) begin_next();
    });
    return std::shared_ptr<ticket>(p);
  }

  // One session at a time: the next begins when the last one's receivers have been served.
  void begin_next() {
    if (queue_.empty()) {
      if (closing_) io_.stop();
      return;
    }
    queue_.front()->begin([this] {
      queue_.pop_front();
      begin_next();
    });
  }

  result<void> open_rail(std::size_t index) {
    sender_rail_socket& r = shell_.rails[index];
    udp_socket::options o;
    o.ttl = shell_.plan.ttl;
    o.buffer_bytes = std::min(shell_.options.socket_buffer, 4u << 20);
    o.gro = false;   // what comes here is small and seldom
    const endpoint* address = r.interface.address_for(shell_.plan.group);
    if (address == nullptr) return fail(errc::network, r.interface.name + " has no address of the group's family");
    endpoint local = *address;
    // The group's port, so that a receiver who knows this host can ask it; any port when that is taken.
    local.port = r.socket ? r.socket->local().port : shell_.plan.group.port;
    close_bulk(r);
    r.descriptor.reset();
    r.socket.reset();
    auto socket = udp_socket::open_unicast(local, r.interface.index, o);
    if (!socket) {
      local.port = 0;
      socket = udp_socket::open_unicast(local, r.interface.index, o);
    }
    if (!socket) return tl::unexpected(socket.error());
    r.socket = std::move(*socket);
    r.descriptor = std::make_unique<asio::posix::stream_descriptor>(io_, ::dup(r.socket->fd()));
    return open_bulk(r);
  }

  void close_bulk(sender_rail_socket& r) {
    r.room.reset();
    r.bulk.reset();
  }

  result<void> open_bulk(sender_rail_socket& r) {
    close_bulk(r);
    auto bulk = open_bulk_sender(shell_.options, shell_.plan, r.interface, *r.socket, running_ ? later_patience : first_patience);
    if (!bulk) return tl::unexpected(bulk.error());
    r.bulk = std::move(*bulk);
    if (r.bulk->room_fd() >= 0) r.room = std::make_unique<asio::posix::stream_descriptor>(io_, ::dup(r.bulk->room_fd()));
    return {};
  }

  bool reopen(std::size_t index) {
    auto all = list_interfaces();
    if (!all) return false;
    shell_.all_interfaces = *all;
    for (const network_interface& n : *all) {
      if (n.name != shell_.rails[index].interface.name || !n.up) continue;
      const bool same = n.index == shell_.rails[index].interface.index && n.addresses == shell_.rails[index].interface.addresses;
      sender_rail_socket& r = shell_.rails[index];
      if (same && r.bulk && r.bulk->problem() == nullptr) return true;
      if (same && r.socket) {   // the lane alone went away
        if (!open_bulk(r)) return false;
        shell_.log(log_level::info, n.name + " is back");
        return true;
      }
      r.interface = n;
      if (!open_rail(index)) return false;
      if (query_) (void)query_->join(n.index);
      shell_.log(log_level::info, n.name + " is back");
      listen(index);
      return true;
    }
    return false;
  }

  void listen(std::size_t index) {
    sender_rail_socket& r = shell_.rails[index];
    if (!r.descriptor) return;
    r.descriptor->async_wait(asio::posix::stream_descriptor::wait_read, [this, index, socket = r.socket.get()](const asio::error_code& e) {
      if (e || shell_.rails[index].socket.get() != socket) return;
      receive(*socket, [index](const datagrams&) { return index; });
      if (shell_.rails[index].socket.get() == socket) listen(index);
    });
  }

  void listen_for_queries() {
    if (!query_) return;
    query_descriptor_->async_wait(asio::posix::stream_descriptor::wait_read, [this](const asio::error_code& e) {
      if (e) return;
      receive(*query_, [this](const datagrams& d) {
        for (std::size_t i = 0; i < shell_.rails.size(); ++i)
          if (shell_.rails[i].interface.index == d.interface) return i;
        return std::size_t(0);
      });
      listen_for_queries();
    });
  }

  template <class RailOf>
  void receive(udp_socket& socket, RailOf rail_of) {
    for (int round = 0; round < 4; ++round) {
      const std::size_t n = socket.receive([&](const datagrams& d) {
        const path from{d.from, static_cast<std::uint32_t>(rail_of(d))};
        for (std::size_t i = 0; i < d.count(); ++i)
          if (!queue_.empty()) queue_.front()->handle_datagram(from, d.datagram(i));
      });
      if (n == 0) break;
    }
    if (!queue_.empty()) {
      const auto p = queue_.front();
      p->after_receive();
    }
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::thread_pool workers_;
  lanes lanes_;
  memory_lender lender_;
  publisher_shell shell_;
  std::unique_ptr<udp_socket> query_;
  std::unique_ptr<asio::posix::stream_descriptor> query_descriptor_;
  std::deque<std::shared_ptr<publication>> queue_;
  bool closing_ = false, running_ = false;
  std::thread thread_;
};

result<std::unique_ptr<publisher>> publisher::open(const publisher_options& options) {
  const auto all = list_interfaces();
  if (!all) return tl::unexpected(all.error());
  auto plan = plan_sending(options, *all);
  if (!plan) return tl::unexpected(plan.error());
  for (const std::string& s : plan->interfaces.skipped)
    if (options.log) options.log(plan->interfaces_named ? log_level::warning : log_level::debug, "interface " + s);
  const std::string rails = describe(plan->interfaces.rails, plan->group);
  if (auto ok = check_lane(options, *plan); !ok) return tl::unexpected(ok.error());
  auto p = std::make_unique<publisher_impl>(options, std::move(*plan));
  if (auto ok = p->open_sockets(); !ok) return tl::unexpected(ok.error());
  if (options.log) options.log(log_level::info, "announcing on " + rails);
  p->run();
  return std::unique_ptr<publisher>(std::move(p));
}

}  // namespace ddf
