// An object that lands as one file.
#include <fcntl.h>

#include "lib/store/partial_sink.hpp"

namespace ddf {

namespace {

class file_sink final : public partial_sink {
 public:
  file_sink(std::shared_ptr<tree_core> core, const manifest& m, placement at, std::optional<receive_state::claim> claim)
      : partial_sink(std::move(core), m, std::move(at), std::move(claim)) {}

 protected:
  os_result<descriptor> open_part(std::uint32_t) override {
    return open_writable(core_->root.get(), at_.hidden_path(), O_RDWR, 0);
  }

  result<committed_record> finish() override {
    const auto file = opened(0);
    if (!file) return tl::unexpected(fault("opening", 0, file.error()));
    committed_record record;
    record.files.resize(1);
    if (auto ok = finish_part(**file, 0, true, record.files[0]); !ok) return tl::unexpected(ok.error());
    record.inode = record.files[0].inode;
    return record;
  }

  result<void> allowed(int folder, const std::string& name) const override { return may_replace_file(*core_, at_, folder, name); }
};

}  // namespace

std::unique_ptr<partial_sink> make_file_sink(std::shared_ptr<tree_core> core, const manifest& m, placement at, std::optional<receive_state::claim> claim) {
  return std::make_unique<file_sink>(std::move(core), m, std::move(at), std::move(claim));
}

}  // namespace ddf
