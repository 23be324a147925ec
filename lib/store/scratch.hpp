// A nameless file for bytes that are of use for a while: a delta while it is made, sent, received or applied.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include "lib/store/descriptor.hpp"
#include "lib/store/sink.hpp"
#include "lib/store/source.hpp"

namespace ddf {

class scratch_file {
 public:
  /// Input: a folder to make it in, without a name; empty, or where the file system cannot do that: memory.
  /// Errors: io.
  static result<std::shared_ptr<scratch_file>> make(const std::string& folder);

  /// Thread-safe. Errors: io (ENOSPC …).
  result<void> write(std::uint64_t offset, std::span<const iovec> pieces);
  result<void> write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Fills `out`; integrity when the file is shorter.
  result<void> read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  explicit scratch_file(descriptor file) : file_(std::move(file)) {}
  descriptor file_;
};

/// Receives a delta into a scratch file. Nothing is ever visible of it, and it does not outlive the process.
class scratch_sink final : public object_sink {
 public:
  explicit scratch_sink(std::shared_ptr<scratch_file> file) : file_(std::move(file)) {}
  const std::shared_ptr<scratch_file>& file() const { return file_; }

  result<void> write(std::uint32_t part, std::uint64_t offset, std::span<const iovec> pieces) override;
  result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) override;
  result<std::string> commit(const digest_table&) override { return std::string(); }
  result<void> checkpoint(const range_set&) override { return {}; }
  result<void> keep(const range_set&) override { return {}; }
  void discard() override {}

 private:
  const std::shared_ptr<scratch_file> file_;
};

}  // namespace ddf
