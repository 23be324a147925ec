// Opens paths below a folder such that nothing can lead out of it: no "..", no absolute path, no symbolic link.
#pragma once
#include <string>

#include "lib/store/descriptor.hpp"
#include "lib/store/file_system.hpp"

namespace ddf {

/// Opens `path` relative to `folder`; an empty path is the folder itself. No component, the last one included, may be a
/// symbolic link (ELOOP), nor may the path leave the folder (EXDEV). One openat2, and where the kernel or a container's
/// filter lacks it, one openat per component. `flags` as for open; O_CLOEXEC and O_NOFOLLOW are added.
os_result<descriptor> open_beneath(file_system& files, int folder, const std::string& path, int flags, mode_t mode = 0);

/// The fallback of open_beneath, which behaves the same.
os_result<descriptor> open_component_wise(file_system& files, int folder, const std::string& path, int flags, mode_t mode = 0);

/// Opens the folder `path` below `folder` and makes what is missing of it. Those made get an fsync of their parent when `durable`.
/// `made`, when given, is set to how many were made.
os_result<descriptor> make_folders_beneath(file_system& files, int folder, const std::string& path, bool durable, int* made = nullptr);

/// Removes `name`, one component: a file, or a folder with all that is in it, without following a link. Output: 0 or the first errno; goes on after one.
int remove_beneath(file_system& files, int folder, const std::string& name);

/// "a/b/c" -> "a/b" and "c"; "c" -> "" and "c".
std::string parent_of(const std::string& path);
std::string base_of(const std::string& path);

}  // namespace ddf
