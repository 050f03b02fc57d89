#include "scenarios/write.hpp"

#include <nlohmann/json.hpp>

#include "scenarios/units_text.hpp"
#include "scenarios/visit.hpp"

namespace trainyard::scenarios {
namespace {

using Json = nlohmann::ordered_json;

template <visit::Described T>
Json write_struct(T& value);

template <class T>
Json write_value(T& value) {
  if constexpr (std::is_same_v<T, bool> || visit::Whole<T> || std::is_same_v<T, double> ||
                std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (visit::is_quantity<T> || std::is_same_v<T, Duration>) {
    return to_exact_text(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else if constexpr (visit::is_optional<T>) {
    return write_value(*value);
  } else if constexpr (visit::is_list<T>) {
    Json out = Json::array();
    for (auto& item : value) out.push_back(write_value(item));
    return out;
  } else if constexpr (visit::is_map<T>) {
    Json out = Json::object();
    for (auto& [key, item] : value) out[key] = write_value(item);
    return out;
  } else {
    return write_struct(value);
  }
}

class Writer {
 public:
  explicit Writer(Json& out) : out_(out) {}

  template <class T>
  void required(std::string_view key, T& member, std::string_view, Range range = {}) {
    out_[std::string(key)] = write_value(member);
    visit::keep_checks_safe(member, range);
  }
  template <class T>
  void optional(std::string_view key, T& member, std::string_view, Range range = {}) {
    if constexpr (visit::is_optional<T>) {
      if (member) out_[std::string(key)] = write_value(member);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!member.empty()) out_[std::string(key)] = member;
    } else {
      out_[std::string(key)] = write_value(member);
    }
    visit::keep_checks_safe(member, range);
  }
  template <class T>
  void part(std::string_view key, T& member, std::string_view, std::string_view) {
    out_[std::string(key)] = write_value(member);
  }
  template <class T>
  void optional_part(std::string_view key, T& member, std::string_view, std::string_view) {
    out_[std::string(key)] = write_value(member);
  }
  void check(bool, std::string_view, std::string_view) {}

 private:
  Json& out_;
};

template <visit::Described T>
Json write_struct(T& value) {
  Json out = Json::object();
  Writer writer(out);
  describe(writer, value);
  return out;
}

}  // namespace

std::string write_scenario(const Scenario& scenario) {
  Scenario copy = scenario;  // describe() wants to be able to change what it shows
  return write_struct(copy).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace trainyard::scenarios
