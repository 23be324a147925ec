// Which RDMA devices may be used, in the syntax of NCCL_IB_HCA, which is what hosts with several of them have in their job scripts.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <ddf/error.hpp>

namespace ddf {

/// "mlx5": every device whose name begins so, all ports; "mlx5_0:1": … and only port 1; "=mlx5_0": this name alone; "^mlx5_2": all
/// but those; "^=mlx5_1": all but this name. Several names after one prefix are separated by commas.
class device_selector {
 public:
  device_selector() = default;   // any device

  /// Errors: invalid_argument, with what is allowed.
  static result<device_selector> parse(std::string_view text);
  bool matches(std::string_view device, unsigned port) const;

 private:
  struct entry {
    std::string name;
    std::optional<unsigned> port;   // none: any
  };
  std::vector<entry> entries_;   // none: any device
  bool excludes_ = false, exact_ = false;
};

}  // namespace ddf
