# Compiles the sources of a target in batches: several .cpp files are one translation unit, so that the
# headers, gmock and the templates of the scenario are read and instantiated once for all of them.
# What is compiled so takes less than half of the time. (CMake calls it a unity build; it forms the units by number.)
#
#   trainyard_batches(${CMAKE_SOURCE_DIR} 10)   # every target of the tree, at most 10 sources a batch
#
# Two files may each have a helper `number` in their anonymous namespace; one unit may not. So a file
# joins the first batch that defines none of its names. A name is whatever is defined at the start of a
# line: clang-format never indents what is in a namespace, and always indents the rest.

# Names that are defined in a source: types, aliases, constants, functions that are not members.
function(trainyard_names_of source out)
  set(names "")
  set(word "([A-Za-z_][A-Za-z_0-9]*)")
  file(STRINGS ${source} lines REGEX "^[A-Za-z_[]")
  string(REPLACE "[" "" lines "${lines}")  # CMake does not split a list inside brackets
  string(REPLACE "]" "" lines "${lines}")
  foreach(line IN LISTS lines)
    if(line MATCHES "^(TEST|INSTANTIATE_|namespace |using [a-z]+(::| ))")
      continue()
    elseif(line MATCHES "^(struct|class|enum class|enum|union|using) ${word}")
      list(APPEND names ${CMAKE_MATCH_2})
    elseif(line MATCHES "^MATCHER(_P)?\\(${word}")
      list(APPEND names ${CMAKE_MATCH_2})
    elseif(line MATCHES "^(constexpr|const) [^(]* = ")  # constexpr double MiB = 1048576, GiB = 1073741824;
      string(REGEX MATCHALL "${word} = " constants "${line}")
      string(REPLACE " = " "" constants "${constants}")
      list(APPEND names ${constants})
    elseif(line MATCHES "^([^(=]*[ *&>])?${word}(\\(|{)")
      list(APPEND names ${CMAKE_MATCH_2})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# Targets whose files do not go together yet: names of one hide what another takes from its headers.
set(TRAINYARD_UNBATCHED trainyard_scenarios trainyard_cli test_models_network test_models_scheduling
                        test_models_training test_scenarios test_cli)
# Files of other targets, for the same reason.
set(TRAINYARD_ALONE routing_test.cpp)

function(trainyard_batch target most)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(batches 0)
  foreach(source IN LISTS sources)
    if(IS_ABSOLUTE ${source})
      continue()  # a generated source: compiled alone
    endif()
    if(source IN_LIST TRAINYARD_ALONE)
      set_property(SOURCE ${folder}/${source} TARGET_DIRECTORY ${target} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    set(source ${folder}/${source})
    trainyard_names_of(${source} names)
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    set(batch 0)
    set(clash TRUE)
    while(clash)
      math(EXPR batch "${batch} + 1")
      if(batch GREATER batches)
        set(batches ${batch})
        set(names_${batch} "")
        set(size_${batch} 0)
      endif()
      set(clash FALSE)
      if(size_${batch} EQUAL most)
        set(clash TRUE)
      endif()
      foreach(name IN LISTS names)
        if(name IN_LIST names_${batch})
          set(clash TRUE)
          break()
        endif()
      endforeach()
    endwhile()
    list(APPEND names_${batch} ${names})
    math(EXPR size_${batch} "${size_${batch}} + 1")
    set_property(SOURCE ${source} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP batch${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A type of an anonymous namespace inside another: harmless in a .cpp, which the compiler now takes for a header.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()

function(trainyard_batches folder most)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$" AND NOT target IN_LIST TRAINYARD_UNBATCHED)
      trainyard_batch(${target} ${most})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS folders)
    trainyard_batches(${inner} ${most})
  endforeach()
endfunction()
