# Writes OUT, a C++ file that holds every parts/<kind>/<name>.json under DIR as text, so that the program needs no path
# to find its catalog. Run as: cmake -DDIR=... -DOUT=... -P embed_parts.cmake
file(GLOB_RECURSE files RELATIVE "${DIR}" "${DIR}/*.json")
list(SORT files)
set(code "// Generated from scenarios/parts by embed_parts.cmake.\n#include \"scenarios/catalog.hpp\"\n\n")
string(APPEND code "namespace trainyard::scenarios {\n\nconst std::vector<PartText>& embedded_parts() {\n")
string(APPEND code "  static const std::vector<PartText> parts{\n")
foreach(file IN LISTS files)
  file(READ "${DIR}/${file}" text)
  string(APPEND code "      {\"${file}\", R\"part(${text})part\"},\n")
endforeach()
string(APPEND code "  };\n  return parts;\n}\n\n}  // namespace trainyard::scenarios\n")
file(WRITE "${OUT}" "${code}")
