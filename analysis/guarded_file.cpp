#include "analysis/guarded_file.hpp"

#include <algorithm>

#include "analysis/hdf5_io.hpp"

namespace trainyard::analysis {

namespace {

constexpr hsize_t most_chunk_bytes = hsize_t{64} << 20;
/// deflate cannot shrink by more than 1032 to 1 (zlib's technical notes).
constexpr hsize_t most_compression = 1032;
/// What one dataset may take in memory.
constexpr hsize_t most_bytes = hsize_t{4} << 30;
/// By how much a killed or growing file may claim more than it holds: rows made room for and not
/// yet written are those in the library's chunk cache, 1 MiB a dataset.
constexpr hsize_t most_unwritten_bytes = hsize_t{8} << 20;

void check_storage(hid_t dataset, hsize_t rows, std::size_t type_size, const Doing& doing) {
  PropertiesHandle creation(H5Dget_create_plist(dataset), doing);
  const auto refuse = [&](const char* why) { throw_run_file_error(doing, why); };
  if (H5Pget_external_count(creation.get()) != 0) refuse("its data lie in other files");
  hsize_t ratio = 1;
  const H5D_layout_t storage = H5Pget_layout(creation.get());
  if (storage == H5D_CHUNKED) {
    hsize_t chunk = 0;
    if (H5Pget_chunk(creation.get(), 1, &chunk) != 1 || chunk == 0 ||
        chunk > most_chunk_bytes / type_size)
      refuse("its chunks have an implausible size");
    const int filters = require(H5Pget_nfilters(creation.get()), doing);
    for (int i = 0; i < filters; ++i) {
      unsigned flags = 0, config = 0;
      std::size_t values = 0;
      const H5Z_filter_t filter = H5Pget_filter2(creation.get(), static_cast<unsigned>(i), &flags,
                                                 &values, nullptr, 0, nullptr, &config);
      if (filter == H5Z_FILTER_DEFLATE)
        ratio *= most_compression;
      else if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
        refuse("it uses a filter that run files do not use");
      if (ratio > most_compression) refuse("it is compressed twice");
    }
  } else if (storage != H5D_CONTIGUOUS && storage != H5D_COMPACT) {
    refuse("its data lie in other files");
  }
  // Compared by division: a hostile file may claim 2^63 rows.
  const hsize_t stored = H5Dget_storage_size(dataset);
  const hsize_t plausible = stored / type_size * ratio + stored % type_size * ratio / type_size;
  if (rows > plausible + most_unwritten_bytes / type_size)
    refuse("it claims more rows than the file holds");
  if (rows > most_bytes / type_size) refuse("it is larger than 4 GiB");
}

}  // namespace

Hdf5Handle<H5Oclose> GuardedFile::open(const std::string& path) const {
  const Doing doing{name_, path, "cannot open"};
  for (std::size_t end = 0; !path.empty() && path != "/" && end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (require(H5Lexists(file_.get(), part.c_str(), H5P_DEFAULT), doing) == 0)
      throw_run_file_error(doing, "there is no such object");
    H5L_info_t link;
    require(H5Lget_info(file_.get(), part.c_str(), &link, H5P_DEFAULT), doing);
    if (link.type != H5L_TYPE_HARD) throw_run_file_error(doing, "it is a link to somewhere else");
  }
  return {H5Oopen(file_.get(), path.empty() ? "/" : path.c_str(), H5P_DEFAULT), doing};
}

bool GuardedFile::has(const std::string& path) const {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const htri_t is_there = H5Lexists(file_.get(), path.substr(0, end).c_str(), H5P_DEFAULT);
    if (require(is_there, {name_, path, "cannot look up"}) == 0) return false;
  }
  return true;
}

bool GuardedFile::is_group(const std::string& path) const {
  return H5Iget_type(open(path).get()) == H5I_GROUP;
}

std::vector<std::string> GuardedFile::members(const std::string& path, std::size_t most) const {
  const Doing doing{name_, path, "cannot list"};
  const auto object = open(path);
  if (H5Iget_type(object.get()) != H5I_GROUP) throw_run_file_error(doing, "it is not a group");
  PropertiesHandle creation(H5Gget_create_plist(object.get()), doing);
  unsigned order = 0;
  require(H5Pget_link_creation_order(creation.get(), &order), doing);
  const H5_index_t index =
      (order & H5P_CRT_ORDER_INDEXED) != 0 ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
  H5G_info_t info;
  require(H5Gget_info(object.get(), &info), doing);
  if (info.nlinks > most) throw_run_file_error(doing, "it has too many members");
  std::vector<std::string> out;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[512];
    const ssize_t length = require(H5Lget_name_by_idx(object.get(), ".", index, H5_ITER_INC, i,
                                                      name, sizeof name, H5P_DEFAULT),
                                   doing);
    if (length > 0 && length < static_cast<ssize_t>(sizeof name)) out.emplace_back(name);
  }
  return out;
}

std::vector<Attribute> GuardedFile::attributes(const std::string& path) const {
  return read_attributes(open(path).get(), {name_, path, "cannot read the attributes"});
}

GuardedFile::Vector GuardedFile::vector(const std::string& path) const {
  const Doing doing{name_, path, "cannot read"};
  auto object = open(path);
  if (H5Iget_type(object.get()) != H5I_DATASET) throw_run_file_error(doing, "it is not a dataset");
  object.reset();
  DatasetHandle dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT), doing);
  if (is_live_) require(H5Drefresh(dataset.get()), doing);
  SpaceHandle space(H5Dget_space(dataset.get()), doing);
  if (H5Sget_simple_extent_ndims(space.get()) != 1)
    throw_run_file_error(doing, "it is not one-dimensional");
  hsize_t rows = 0;
  require(H5Sget_simple_extent_dims(space.get(), &rows, nullptr), doing);
  TypeHandle type(H5Dget_type(dataset.get()), doing);
  const std::size_t size = H5Tget_size(type.get());
  if (size == 0 || size > most_chunk_bytes)
    throw_run_file_error(doing, "its rows have an implausible size");
  check_storage(dataset.get(), rows, size, doing);
  return {std::move(dataset), std::move(type), static_cast<std::size_t>(rows)};
}

std::size_t GuardedFile::rows(const std::string& path) const {
  return vector(path).rows;
}

std::size_t GuardedFile::written_events(const std::string& path) const {
  constexpr std::size_t step = layout::event_chunk;
  std::size_t end = rows(path);
  while (end > 0) {
    const std::size_t begin = end > step ? end - step : 0;
    const std::vector<EventRow> tail = events(path, begin, end - begin);
    std::size_t kept = tail.size();
    while (kept > 0 && tail[kept - 1].time_ns == unwritten_ns) --kept;
    if (kept > 0) return begin + kept;
    end = begin;
  }
  return 0;
}

std::vector<EventRow> GuardedFile::events(const std::string& path, std::size_t first,
                                          std::size_t most) const {
  const Doing doing{name_, path, "cannot read the events"};
  const Vector v = vector(path);
  if (H5Tget_class(v.type.get()) != H5T_COMPOUND)
    throw_run_file_error(doing, "they are not records");
  for (const char* field : {"time_ns", "cause", "value", "kind", "subject", "phase"}) {
    const int at = H5Tget_member_index(v.type.get(), field);
    if (at < 0) throw_run_file_error(doing, std::string("a field is missing: ") + field);
    const H5T_class_t found = H5Tget_member_class(v.type.get(), static_cast<unsigned>(at));
    const bool is_real = std::string_view(field) == "value";
    const bool is_enum = std::string_view(field) == "phase";
    if (found != (is_real ? H5T_FLOAT : is_enum ? H5T_ENUM : H5T_INTEGER))
      throw_run_file_error(doing, std::string("a field has another type: ") + field);
  }
  if (first >= v.rows) return {};
  const hsize_t start = first, count = std::min(most, v.rows - first);
  std::vector<EventRow> out(count);
  SpaceHandle file_space(H5Dget_space(v.dataset.get()), doing);
  require(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr),
          doing);
  SpaceHandle memory_space(H5Screate_simple(1, &count, nullptr), doing);
  require(H5Dread(v.dataset.get(), event_type(doing).get(), memory_space.get(), file_space.get(),
                  H5P_DEFAULT, out.data()),
          doing);
  return out;
}

template <class T>
std::vector<T> GuardedFile::numbers(const Vector& v, const std::string& path,
                                    hid_t memory_type) const {
  std::vector<T> out(v.rows);
  if (v.rows > 0)
    require(H5Dread(v.dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()),
            {name_, path, "cannot read"});
  return out;
}

std::vector<std::string> GuardedFile::texts(const Vector& v, const std::string& path) const {
  const Doing doing{name_, path, "cannot read the text"};
  if (H5Tget_class(v.type.get()) != H5T_STRING || H5Tis_variable_str(v.type.get()) != 0)
    throw_run_file_error(doing, "it is not text of fixed length");
  const std::size_t size = H5Tget_size(v.type.get());
  std::string bytes(v.rows * size, '\0');
  if (v.rows > 0)
    require(H5Dread(v.dataset.get(), v.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()),
            doing);
  std::vector<std::string> out;
  out.reserve(v.rows);
  for (std::size_t i = 0; i < v.rows; ++i) {
    const std::string_view cell(bytes.data() + i * size, size);
    out.push_back(clean_text(cell.substr(0, cell.find('\0'))));
  }
  return out;
}

std::vector<std::string> GuardedFile::texts(const std::string& path) const {
  return texts(vector(path), path);
}

std::vector<double> GuardedFile::reals(const std::string& path) const {
  const Vector v = vector(path);
  if (H5Tget_class(v.type.get()) != H5T_FLOAT)
    throw_run_file_error({name_, path, "cannot read"}, "these are not real numbers");
  return numbers<double>(v, path, H5T_NATIVE_DOUBLE);
}

std::vector<std::int64_t> GuardedFile::int64s(const std::string& path) const {
  const Vector v = vector(path);
  if (H5Tget_class(v.type.get()) != H5T_INTEGER)
    throw_run_file_error({name_, path, "cannot read"}, "these are not whole numbers");
  return numbers<std::int64_t>(v, path, H5T_NATIVE_INT64);
}

Column GuardedFile::column(const std::string& path, std::string name) const {
  const Vector v = vector(path);
  const auto about = attributes(path);
  Column out;
  out.name = std::move(name);
  out.units = text_attribute(about, "units");
  out.long_name = text_attribute(about, "long_name");
  switch (H5Tget_class(v.type.get())) {
    case H5T_FLOAT:
      out.cells = numbers<double>(v, path, H5T_NATIVE_DOUBLE);
      break;
    case H5T_STRING:
      out.cells = texts(v, path);
      break;
    case H5T_INTEGER:
      if (H5Tget_sign(v.type.get()) == H5T_SGN_NONE)
        out.cells = numbers<std::uint64_t>(v, path, H5T_NATIVE_UINT64);
      else
        out.cells = numbers<std::int64_t>(v, path, H5T_NATIVE_INT64);
      break;
    default:
      throw_run_file_error({name_, path, "cannot read"}, "its type is none that run files use");
  }
  return out;
}

}  // namespace trainyard::analysis
