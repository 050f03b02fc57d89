#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/hdf5_handles.hpp"
#include "analysis/run_file.hpp"
#include "analysis/table.hpp"

/// A file that comes from elsewhere may be damaged or made to harm. The library checks the
/// checksums of its own structures; what it does not check is checked here before anything is read:
/// only hard links, only one dimension, only the filters we use (others would load plug-ins), no
/// external or virtual storage (that would read other files), chunks of sane size, no more rows
/// than the bytes on disk can hold, no variable-length text.
namespace trainyard::analysis {

/// What a reader looks at of a file it does not trust. Errors are RunFileError.
class GuardedFile {
 public:
  GuardedFile() = default;
  GuardedFile(FileHandle file, std::string name, bool is_live)
      : file_(std::move(file)), name_(std::move(name)), is_live_(is_live) {}

  bool has(const std::string& path) const;
  bool is_group(const std::string& path) const;
  /// Members in the order they were made, at most `most`.
  std::vector<std::string> members(const std::string& group, std::size_t most) const;
  std::vector<Attribute> attributes(const std::string& path) const;
  std::size_t rows(const std::string& path) const;
  /// Rows up to the last one that was written (see unwritten_ns).
  std::size_t written_events(const std::string& path) const;

  std::vector<EventRow> events(const std::string& path, std::size_t first, std::size_t most) const;
  std::vector<std::string> texts(const std::string& path) const;
  std::vector<double> reals(const std::string& path) const;
  std::vector<std::int64_t> int64s(const std::string& path) const;
  Column column(const std::string& path, std::string name) const;

 private:
  struct Vector {  // a checked one-dimensional dataset
    DatasetHandle dataset;
    TypeHandle type;
    std::size_t rows = 0;
  };
  /// The object's identifier, reached over hard links only. H5Oclose closes any kind.
  Hdf5Handle<H5Oclose> open(const std::string& path) const;
  Vector vector(const std::string& path) const;
  template <class T>
  std::vector<T> numbers(const Vector& v, const std::string& path, hid_t memory_type) const;
  std::vector<std::string> texts(const Vector& v, const std::string& path) const;

  FileHandle file_;
  std::string name_;
  bool is_live_ = false;
};

}  // namespace trainyard::analysis
