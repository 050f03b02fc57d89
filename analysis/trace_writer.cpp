#include "analysis/trace_writer.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "analysis/text_file.hpp"

namespace trainyard::analysis {
namespace {

std::string us(std::int64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(ns / 1000),
                int(std::abs(ns % 1000)));
  return text;
}

std::string place_of(const char* phase, int process, int thread) {
  return std::string("{\"ph\":\"") + phase + "\",\"pid\":" + std::to_string(process) +
         ",\"tid\":" + std::to_string(thread);
}

std::string name_text(const std::string& name) {
  return ",\"name\":\"" + json_escaped(name) + '"';
}

}  // namespace

TraceWriter::TraceWriter(const TraceOptions& options) : options_(options) {
  out_.json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
}

void TraceWriter::name_process(int process, const std::string& name) {
  line("{\"ph\":\"M\",\"pid\":" + std::to_string(process) +
       ",\"name\":\"process_name\",\"args\":{\"name\":\"" + json_escaped(name) + "\"}}");
}

void TraceWriter::name_thread(int process, int thread, const std::string& name) {
  line(place_of("M", process, thread) + ",\"name\":\"thread_name\",\"args\":{\"name\":\"" +
       json_escaped(name) + "\"}}");
}

void TraceWriter::slice(int process, int thread, const std::string& name, std::int64_t from_ns,
                        std::int64_t to_ns, const std::string& args, const char* colour) {
  const std::int64_t begin = std::max(from_ns, options_.from_ns);
  const std::int64_t end = std::min(to_ns, options_.to_ns);
  if (end < begin || (end == begin && from_ns != to_ns) || !has_room()) return;
  line(place_of("X", process, thread) + name_text(name) + ",\"ts\":" + us(begin) +
       ",\"dur\":" + us(end - begin) + ",\"cname\":\"" + colour + "\",\"args\":{" + args + "}}");
}

void TraceWriter::instant(int process, int thread, const std::string& name, std::int64_t at_ns,
                          const std::string& args) {
  if (at_ns < options_.from_ns || at_ns > options_.to_ns || !has_room()) return;
  line(place_of("i", process, thread) + ",\"s\":\"t\"" + name_text(name) + ",\"ts\":" + us(at_ns) +
       ",\"args\":{" + args + "}}");
}

void TraceWriter::counter(int process, const std::string& name, std::int64_t at_ns, double value) {
  if (at_ns < options_.from_ns || at_ns > options_.to_ns || !std::isfinite(value) || !has_room())
    return;
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  line("{\"ph\":\"C\",\"pid\":" + std::to_string(process) + name_text(name) +
       ",\"ts\":" + us(at_ns) + ",\"args\":{\"value\":" + text + "}}");
}

Trace TraceWriter::take() {
  out_.json += "\n]}\n";
  return std::move(out_);
}

bool TraceWriter::has_room() {
  if (out_.events < options_.most) return true;
  ++out_.left_out;
  return false;
}

void TraceWriter::line(const std::string& text) {
  out_.json += (is_first_ ? "" : ",\n") + text;
  is_first_ = false;
  ++out_.events;
}

std::string json_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", u);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

void write_maybe_gzip(const std::string& path, const std::string& text) {
  if (!path.ends_with(".gz")) return write_text_file(path, text);
  z_stream stream{};
  constexpr int gzip = 16, window = 15, memory = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window + gzip, memory,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw TextFileError("cannot compress '" + path + "'");
  std::string packed(deflateBound(&stream, uLong(text.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = uInt(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw TextFileError("cannot compress '" + path + "'");
  write_text_file(path, packed);
}

}  // namespace trainyard::analysis
