#pragma once

#include <string>
#include <string_view>

namespace trainyard::analysis {

/// SHA-256 (FIPS 180-4) as 64 lower-case hexadecimal digits: names the scenario of a run. Written
/// out because the libraries at hand have none (Boost stops at SHA-1) and OpenSSL would be a
/// dependency of its own for one attribute.
std::string sha256(std::string_view bytes);

}  // namespace trainyard::analysis
