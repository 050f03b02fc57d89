#include "analysis/hdf5_io.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <type_traits>

#include "sim/check.hpp"
#include "sim/wait.hpp"

namespace trainyard::analysis {

namespace {

constexpr std::size_t most_text_bytes = std::size_t{64} << 20;
constexpr hsize_t most_attributes = 4096;

AttributeHandle make_attribute(hid_t object, const std::string& name, hid_t type,
                               const Doing& doing) {
  SpaceHandle scalar(H5Screate(H5S_SCALAR), doing);
  return {H5Acreate2(object, name.c_str(), type, scalar.get(), H5P_DEFAULT, H5P_DEFAULT), doing};
}

std::optional<Value> read_scalar(hid_t attribute, const Doing& doing) {
  SpaceHandle space(H5Aget_space(attribute), doing);
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return std::nullopt;
  TypeHandle type(H5Aget_type(attribute), doing);
  const std::size_t size = H5Tget_size(type.get());
  switch (H5Tget_class(type.get())) {
    case H5T_INTEGER:
      if (size > 8) return std::nullopt;
      if (H5Tget_sign(type.get()) == H5T_SGN_NONE) {
        std::uint64_t v = 0;
        require(H5Aread(attribute, H5T_NATIVE_UINT64, &v), doing);
        return v;
      } else {
        std::int64_t v = 0;
        require(H5Aread(attribute, H5T_NATIVE_INT64, &v), doing);
        return v;
      }
    case H5T_FLOAT: {
      if (size > 8) return std::nullopt;
      double v = 0;
      require(H5Aread(attribute, H5T_NATIVE_DOUBLE, &v), doing);
      return v;
    }
    case H5T_STRING: {
      if (H5Tis_variable_str(type.get()) != 0 || size == 0 || size > most_text_bytes)
        return std::nullopt;
      std::string bytes(size, '\0');
      require(H5Aread(attribute, type.get(), bytes.data()), doing);
      bytes.resize(std::min(bytes.find('\0'), size));
      return clean_text(bytes);
    }
    default:
      return std::nullopt;
  }
}

/// A dimension scale shared by the columns (or the values) in a group: netCDF tools see one named
/// dimension.
void attach_scale(hid_t dataset, hid_t scale, const Doing& doing) {
  require(H5DSattach_scale(dataset, scale, 0), doing);
}

std::size_t longest(const std::vector<std::string>& texts) {
  std::size_t bytes = 1;
  for (const std::string& t : texts) bytes = std::max(bytes, t.size());
  return bytes;
}

std::string packed(const std::vector<std::string>& texts, std::size_t bytes) {
  std::string out(texts.size() * bytes, '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(out.data() + i * bytes, bytes);
  return out;
}

/// A whole column at once. Long ones are compressed.
DatasetHandle write_vector(hid_t group, const std::string& name, hid_t type, const void* data,
                           hsize_t rows, const Doing& doing) {
  constexpr hsize_t compress_from = 1024, chunk_rows = 8192;
  SpaceHandle space(H5Screate_simple(1, &rows, nullptr), doing);
  PropertiesHandle creation(H5Pcreate(H5P_DATASET_CREATE), doing);
  require(H5Pset_obj_track_times(creation.get(), false), doing);
  if (rows >= compress_from) {
    const hsize_t chunk = std::min(rows, chunk_rows);
    require(H5Pset_chunk(creation.get(), 1, &chunk), doing);
    require(H5Pset_shuffle(creation.get()), doing);
    require(H5Pset_deflate(creation.get(), 1), doing);
  }
  DatasetHandle dataset(
      H5Dcreate2(group, name.c_str(), type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
      doing);
  if (rows > 0) require(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), doing);
  return dataset;
}

DatasetHandle write_column(hid_t group, const Column& column, const Doing& doing) {
  return std::visit(
      [&](const auto& cells) {
        using Cell = typename std::decay_t<decltype(cells)>::value_type;
        if constexpr (std::is_same_v<Cell, std::string>) {
          const std::size_t bytes = longest(cells);
          return write_vector(group, column.name, text_type(bytes, doing).get(),
                              packed(cells, bytes).data(), cells.size(), doing);
        } else {
          const hid_t type = std::is_same_v<Cell, double>          ? H5T_NATIVE_DOUBLE
                             : std::is_same_v<Cell, std::uint64_t> ? H5T_NATIVE_UINT64
                                                                   : H5T_NATIVE_INT64;
          return write_vector(group, column.name, type, cells.data(), cells.size(), doing);
        }
      },
      column.cells);
}

}  // namespace

void write_attribute(hid_t object, const Attribute& attribute, const Doing& doing) {
  if (require(H5Aexists(object, attribute.name.c_str()), doing) > 0)
    require(H5Adelete(object, attribute.name.c_str()), doing);
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          const TypeHandle type = text_type(v.size(), doing);
          AttributeHandle made = make_attribute(object, attribute.name, type.get(), doing);
          require(H5Awrite(made.get(), type.get(), v.c_str()), doing);
        } else {
          const hid_t type = std::is_same_v<T, double>          ? H5T_NATIVE_DOUBLE
                             : std::is_same_v<T, std::uint64_t> ? H5T_NATIVE_UINT64
                                                                : H5T_NATIVE_INT64;
          AttributeHandle made = make_attribute(object, attribute.name, type, doing);
          require(H5Awrite(made.get(), type, &v), doing);
        }
      },
      attribute.value);
}

std::vector<Attribute> read_attributes(hid_t object, const Doing& doing) {
  H5O_info_t info;
  require(H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS), doing);
  if (info.num_attrs > most_attributes) throw_run_file_error(doing, "too many attributes");
  std::vector<Attribute> out;
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    AttributeHandle attribute(
        H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
        doing);
    char name[256];
    const ssize_t length = require(H5Aget_name(attribute.get(), sizeof name, name), doing);
    if (length >= static_cast<ssize_t>(sizeof name)) continue;
    if (auto value = read_scalar(attribute.get(), doing))
      out.push_back({clean_text(name), std::move(*value)});
  }
  return out;
}

const Value* find(const std::vector<Attribute>& attributes, std::string_view name) {
  for (const Attribute& a : attributes)
    if (a.name == name) return &a.value;
  return nullptr;
}

std::string text_attribute(const std::vector<Attribute>& attributes, std::string_view name) {
  const Value* value = find(attributes, name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::string() : *text;
}

TypeHandle event_type(const Doing& doing) {
  TypeHandle phase(H5Tenum_create(H5T_NATIVE_UINT8), doing);
  for (std::uint8_t p = 0; p <= static_cast<std::uint8_t>(sim::Phase::observation); ++p)
    require(H5Tenum_insert(phase.get(), sim::to_text(static_cast<sim::Phase>(p)).c_str(), &p),
            doing);

  TypeHandle row(H5Tcreate(H5T_COMPOUND, sizeof(EventRow)), doing);
  const auto insert = [&](const char* name, std::size_t offset, hid_t type) {
    require(H5Tinsert(row.get(), name, offset, type), doing);
  };
  insert("time_ns", offsetof(EventRow, time_ns), H5T_NATIVE_INT64);
  insert("cause", offsetof(EventRow, cause), H5T_NATIVE_INT64);
  insert("value", offsetof(EventRow, value), H5T_NATIVE_DOUBLE);
  insert("kind", offsetof(EventRow, kind), H5T_NATIVE_INT32);
  insert("subject", offsetof(EventRow, subject), H5T_NATIVE_INT32);
  insert("phase", offsetof(EventRow, phase), phase.get());
  return row;
}

GroupHandle make_group(hid_t file, const std::string& path, const Doing& doing) {
  PropertiesHandle links(H5Pcreate(H5P_LINK_CREATE), doing);
  PropertiesHandle creation(H5Pcreate(H5P_GROUP_CREATE), doing);
  require(H5Pset_link_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
          doing);
  require(H5Pset_obj_track_times(creation.get(), false), doing);
  GroupHandle group;
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    const bool is_there = require(H5Lexists(file, part.c_str(), H5P_DEFAULT), doing) > 0;
    group = GroupHandle(
        is_there ? H5Gopen2(file, part.c_str(), H5P_DEFAULT)
                 : H5Gcreate2(file, part.c_str(), links.get(), creation.get(), H5P_DEFAULT),
        doing);
  }
  return group;
}

GrowingDataset::GrowingDataset(hid_t file, std::string_view file_name, std::string path,
                               const TypeHandle& type, std::size_t chunk_rows, hid_t memory_type,
                               const void* unwritten)
    : file_name_(file_name), path_(std::move(path)) {
  const Doing making = doing("cannot make the dataset");
  const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = chunk_rows;
  SpaceHandle space(H5Screate_simple(1, &none, &unlimited), making);
  PropertiesHandle creation(H5Pcreate(H5P_DATASET_CREATE), making);
  require(H5Pset_chunk(creation.get(), 1, &chunk), making);
  require(H5Pset_shuffle(creation.get()), making);
  require(H5Pset_deflate(creation.get(), 1), making);
  require(H5Pset_obj_track_times(creation.get(), false), making);
  require(H5Pset_fill_value(creation.get(), memory_type, unwritten), making);
  dataset_ = DatasetHandle(H5Dcreate2(file, path_.c_str(), type.get(), space.get(), H5P_DEFAULT,
                                      creation.get(), H5P_DEFAULT),
                           making);
}

void GrowingDataset::append(const void* data, std::size_t rows, hid_t memory_type) {
  if (rows == 0) return;
  const Doing appending = doing("cannot append");
  const hsize_t start = rows_, count = rows, extent = rows_ + rows;
  require(H5Dset_extent(dataset_.get(), &extent), appending);
  SpaceHandle file_space(H5Dget_space(dataset_.get()), appending);
  require(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr),
          appending);
  SpaceHandle memory_space(H5Screate_simple(1, &count, nullptr), appending);
  require(H5Dwrite(dataset_.get(), memory_type, memory_space.get(), file_space.get(), H5P_DEFAULT,
                   data),
          appending);
  rows_ += rows;
}

void GrowingDataset::flush() {
  require(H5Dflush(dataset_.get()), doing("cannot write"));
}

void GrowingDataset::close() {
  if (!dataset_.reset()) throw_hdf5_error(doing("cannot close"));
}

void write_table(hid_t file, std::string_view file_name, const Table& table) {
  const Doing doing{file_name, table.path, "cannot write the table"};
  for (const Column& c : table.columns) {
    check(c.size() == table.rows(), "all columns of a table have the same length", table.path,
          c.name);
    check(path_component(c.name) == c.name && c.name != layout::row,
          "a column's name is a plain word", table.path, c.name);
  }
  GroupHandle group = make_group(file, table.path, doing);
  write_attribute(group.get(), {"description", table.description}, doing);
  write_attribute(group.get(), {"rows", std::uint64_t{table.rows()}}, doing);
  for (const Attribute& a : table.attributes) write_attribute(group.get(), a, doing);

  std::vector<std::int64_t> numbers(table.rows());
  std::iota(numbers.begin(), numbers.end(), 0);
  Column row_numbers(layout::row, "1", "row number", ColumnType::int64);
  row_numbers.cells = std::move(numbers);
  DatasetHandle rows = write_column(group.get(), row_numbers, doing);
  require(H5DSset_scale(rows.get(), layout::row), doing);
  for (const Column& c : table.columns) {
    const Doing writing{file_name, table.path, c.name};
    DatasetHandle column = write_column(group.get(), c, writing);
    write_attribute(column.get(), {"units", c.units}, writing);
    write_attribute(column.get(), {"long_name", c.long_name}, writing);
    attach_scale(column.get(), rows.get(), writing);
  }
}

}  // namespace trainyard::analysis
