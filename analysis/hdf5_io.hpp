#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/hdf5_handles.hpp"
#include "analysis/run_file.hpp"
#include "analysis/table.hpp"

/// The pieces of a run file that writer, reader and repair share.
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

}  // namespace trainyard::analysis
