// Small files in a state folder: a magic, a digest over all that follows, the fields. A damaged one counts as none.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ddf/error.hpp>
#include "lib/model/manifest.hpp"
#include "lib/store/descriptor.hpp"
#include "lib/store/file_system.hpp"

namespace ddf {

inline constexpr std::size_t record_magic_bytes = 8;

/// `body` behind its magic (8 bytes) and digest, ready to be saved.
std::vector<std::byte> seal_record(std::string_view magic, std::span<const std::byte> body);
/// The body again; nothing when the magic or the digest is not right.
std::optional<std::span<const std::byte>> unseal_record(std::string_view magic, std::span<const std::byte> record);

/// Replaces the file `name` in `folder`: a temporary file and a rename, so that a reader sees the old one or the new one.
/// `durable`: with fsync, for what cannot be found out again. Errors: io.
result<void> save_record(file_system& files, int folder, const std::string& name, std::span<const std::byte> record, bool durable);
/// Errors: nothing when it is not there, not readable, not a regular file, or longer than `bytes_max`.
std::optional<std::vector<std::byte>> load_record(int folder, const std::string& name, std::size_t bytes_max);

/// Opens a folder of records, made when missing with all above it, for this user only. Errors: io, naming the folder.
result<descriptor> open_record_folder(file_system& files, const std::string& path);

/// A digest of the description: everything in a manifest but the version, the consistency class and the base. Equal digests: the same name, parts, sizes, modes, blocks.
digest description_digest(const manifest& m);
/// The file name of the record about an object that lives at `place` (a folder; may be empty): 32 hexadecimal digits.
std::string record_name(std::string_view place, std::string_view object_name);

std::string hexadecimal(std::span<const std::byte> bytes);

}  // namespace ddf
