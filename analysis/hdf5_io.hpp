#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/hdf5_handles.hpp"
#include "analysis/run_file.hpp"
#include "analysis/table.hpp"

/// The pieces of a run file, as the writer makes them and the reader trusts them.
///
/// A file that comes from elsewhere may be damaged or made to harm. The library checks the checksums of
/// its own structures; what it does not check is checked here before anything is read: only hard links,
/// only one dimension, only the filters we use (others would load plug-ins), no external or virtual
/// storage (that would read other files), chunks of sane size, no more rows than the bytes on disk can
/// hold, no variable-length text.
namespace trainyard::analysis {

/// Replaces an attribute of that name.
void write_attribute(hid_t object, const Attribute& attribute, const Doing& doing);
/// Scalars of whole numbers, reals and fixed-length text, by name; others are left out.
std::vector<Attribute> read_attributes(hid_t object, const Doing& doing);
const Value* find(const std::vector<Attribute>& attributes, std::string_view name);
/// The text of an attribute; empty if it is absent or not text.
std::string text_attribute(const std::vector<Attribute>& attributes, std::string_view name);

/// Memory type of EventRow.
TypeHandle event_type(const Doing& doing);

/// Makes the groups on the way to `path`, and the last component too. Groups remember the order in
/// which their members were made, so that columns are listed as they were declared.
GroupHandle make_group(hid_t file, const std::string& path, const Doing& doing);

/// A dataset of one unlimited dimension, shuffled and deflated, appended to in batches.
class GrowingDataset {
 public:
  GrowingDataset() = default;
  /// `unwritten` is one row in `memory_type`: what a row reads as until it is written.
  GrowingDataset(hid_t file, std::string_view file_name, std::string path, const TypeHandle& type,
                 std::size_t chunk_rows, hid_t memory_type, const void* unwritten);

  hid_t id() const { return dataset_.get(); }
  std::size_t rows() const { return rows_; }
  /// `memory_type` is the type of the rows at `data`.
  void append(const void* data, std::size_t rows, hid_t memory_type);
  /// Hands everything appended to the operating system, data before the pointers to it.
  void flush();
  void close();

 private:
  Doing doing(std::string_view what) const { return {file_name_, path_, what}; }

  std::string file_name_;
  std::string path_;
  DatasetHandle dataset_;
  std::size_t rows_ = 0;
};

void write_table(hid_t file, std::string_view file_name, const Table& table);

/// What a reader may look at of a file it does not trust.
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
