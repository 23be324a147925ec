// Lists all that is below a folder, without following links and with one open folder at a time.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <vector>

#include "lib/store/file_system.hpp"

namespace ddf {

struct scan_entry {
  std::string path;        // relative to the folder
  struct stat status {};   // of the entry itself: a link is a link
};

/// Everything below `folder`; what is in a folder comes after that folder, otherwise in no particular order.
/// Errors: the errno of the first folder that cannot be read; EOVERFLOW beyond `entries_max`. `where`, when given, is set to
/// the path it is about. Cost: one call per entry.
os_result<std::vector<scan_entry>> scan_folder(file_system& files, int folder, std::size_t entries_max, std::string* where = nullptr);

}  // namespace ddf
