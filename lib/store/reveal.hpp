// The one step that makes a hidden file or folder visible under its final name.
#pragma once
#include <functional>
#include <string>

#include <ddf/error.hpp>
#include "lib/store/file_system.hpp"

namespace ddf {

/// Whether what is at `name` in `folder` may be replaced. Errors: refused, with the cure. Nothing there may be replaced.
using may_replace = std::function<result<void>(int folder, const std::string& name)>;

/// Renames `hidden` to `name`, both in `folder`, and syncs the folder. A file or folder that is there changes places with
/// it, and is at `hidden` after: so nobody ever finds the name empty, and an error can be undone.
///
/// Input:  what `hidden` holds is synced.
/// Output: whether `hidden` is now the old one, to be removed.
/// Errors: refused, io; under `name` is then what was there before.
result<bool> reveal(file_system& files, int folder, const std::string& hidden, const std::string& name, const may_replace& allowed);

}  // namespace ddf
