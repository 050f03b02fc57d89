#include "analysis/hdf5_handles.hpp"

#include <algorithm>

#include "analysis/run_file.hpp"

namespace trainyard::analysis {

namespace {

/// HDF5 calls this for the innermost error first; that one says what really happened.
herr_t keep_first(unsigned, const H5E_error2_t* error, void* reason) {
  auto& text = *static_cast<std::string*>(reason);
  if (text.empty() && error->desc != nullptr) text = error->desc;
  return 0;
}

}  // namespace

void silence_hdf5() {
  thread_local const bool done = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  (void)done;
}

void throw_run_file_error(const Doing& doing, std::string_view reason) {
  std::string text(doing.file);
  if (!doing.object.empty()) text.append(": ").append(doing.object);
  text.append(": ").append(doing.what);
  if (!reason.empty()) text.append(": ").append(reason);
  throw RunFileError(text);
}

void throw_hdf5_error(const Doing& doing) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw_run_file_error(doing, reason);
}

PropertiesHandle file_access(std::string_view path) {
  const Doing doing{path, "", "cannot prepare file access"};
  PropertiesHandle access(H5Pcreate(H5P_FILE_ACCESS), doing);
  require(H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), doing);
  require(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), doing);
  require(H5Pset_file_locking(access.get(), false, true), doing);
  // A reader of a growing file tries again when a checksum is wrong, waiting twice as long each
  // time. The default of 100 tries takes minutes on a damaged file; 24 take some 30 ms.
  require(H5Pset_metadata_read_attempts(access.get(), 24), doing);
  return access;
}

TypeHandle text_type(std::size_t size, const Doing& doing) {
  TypeHandle type(H5Tcopy(H5T_C_S1), doing);
  require(H5Tset_size(type.get(), std::max<std::size_t>(size, 1)), doing);
  require(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), doing);
  require(H5Tset_cset(type.get(), H5T_CSET_UTF8), doing);
  return type;
}

}  // namespace trainyard::analysis
