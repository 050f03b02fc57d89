#pragma once

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>

/// Owners of HDF5 identifiers, and its error codes as exceptions. The C API is used because
/// Debian's C++ API has no SWMR call. Only .cpp files of this folder include this header.
namespace trainyard::analysis {

/// What was being done, for the text of an error: "runs/a.h5: log/events: cannot append: no space
/// left".
struct Doing {
  std::string_view file;
  std::string_view object;
  std::string_view what;
};

/// HDF5 prints its error stack to stderr unless told otherwise, separately in each thread. To be
/// called at every public door of this folder; it costs one look at a flag.
void silence_hdf5();

/// Throws RunFileError with the innermost reason HDF5 has noted.
[[noreturn]] void throw_hdf5_error(const Doing& doing);
[[noreturn]] void throw_run_file_error(const Doing& doing, std::string_view reason);

/// HDF5 calls say "failed" with a negative number, whatever their type.
template <class Status>
Status require(Status status, const Doing& doing) {
  if (status < 0) throw_hdf5_error(doing);
  return status;
}

template <herr_t (*close)(hid_t)>
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  /// Takes ownership; throws if the call that made `id` failed.
  Hdf5Handle(hid_t id, const Doing& doing) : id_(require(id, doing)) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle() { reset(); }

  hid_t get() const { return id_; }
  bool is_open() const { return id_ >= 0; }
  /// Closing may write; false if that failed.
  bool reset() noexcept {
    const hid_t id = std::exchange(id_, H5I_INVALID_HID);
    return id < 0 || close(id) >= 0;
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using FileHandle = Hdf5Handle<H5Fclose>;
using GroupHandle = Hdf5Handle<H5Gclose>;
using DatasetHandle = Hdf5Handle<H5Dclose>;
using SpaceHandle = Hdf5Handle<H5Sclose>;
using TypeHandle = Hdf5Handle<H5Tclose>;
using PropertiesHandle = Hdf5Handle<H5Pclose>;
using AttributeHandle = Hdf5Handle<H5Aclose>;

/// How this folder opens and makes files: the newest format (SWMR needs it, and all its metadata
/// carry checksums), closing a file closes whatever is still open in it, and no advisory locks:
/// they stop a live reader at the wrong moment and fail on some network file systems.
PropertiesHandle file_access(std::string_view path);

/// Fixed-length UTF-8 text of `size` bytes, padded with zeros. Never variable length: that lives in
/// HDF5's global heap, which has no checksum and no bounds check against a damaged file.
TypeHandle text_type(std::size_t size, const Doing& doing);

}  // namespace trainyard::analysis
