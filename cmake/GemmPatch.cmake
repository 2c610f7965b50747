# Kernels with some lines replaced: the mutants of tests/mutants, and where an exercise begins. A patch names the lines,
# and the kernel is made from the step's kernel.cuh as it is now, so it cannot drift from its step: when its lines are
# gone, it does not compile. (Configuring does not fail, because readers change kernels and want to run them.)
#
#   step: 02_shared_tile
#   variant: 32
#   shape: 33x40x70
#   expect: shared-race             an emulator rule, or `mismatch`: the result must be rejected; `a|b`: either,
#                                   where the schedule decides which is met first; `rule`: see tools/exercise_program;
#                                   `other-bits`: two schedules give right results that differ in their last bits
#   passes_bare: true               optional: a bare --check does not notice it
#   says: empty[1]; k-tile 4        optional: texts that stand in every report, parted by `;`; `a|b`: one of the two
#   launches: 2                     optional: so many launches of one plan behind each other, 1 without
#   beta: 0                         optional: the factor of C, of a step with one; otherwise what the step computes unless asked
#   groups: 40:zipf+2               optional: rows in groups, as --groups says them
#   pattern: special                optional: of the inputs, as --pattern says it; exact without, or normal where results are rounded
#   sms: 2                          optional: SMs of the emulated GPU, 4 without
#   file: gemm/fitted/fitted_kernel.cuh    optional: the lines are those of this header, and not the kernel's: one that kernel.cuh
#                                   includes by this name, from common or from the step's folder
#   --- old
#   lines as in kernel.cuh (exactly one place)
#   --- new
#   lines instead
#   --- end                         several old/new pairs may follow each other
#
# A line "..." among the old lines stands for whatever lies between the lines before it and the lines behind it.
#
# The tests compile a patched kernel with the one variant that they run: every other one would take as long to compile again.

# The value of "name: value" in the head of a patch or an exercise; with a further argument, that where there is none.
function(gemm_patch_field text file name result)
  if("${text}" MATCHES "(^|\n)${name}: *([^\n]*)\n")
    set(${result} "${CMAKE_MATCH_2}" PARENT_SCOPE)
  elseif(ARGC GREATER 4)
    set(${result} "${ARGV4}" PARENT_SCOPE)
  else()
    message(FATAL_ERROR "${file} has no line '${name}: ...'.")
  endif()
endfunction()

# Sets `result` to the text of the kernel with the patch's lines replaced, and `error` to the first old lines that do not
# stand in it exactly once, or to nothing.
function(gemm_patch_kernel patch_file kernel_file result error)
  file(READ "${patch_file}" patch)
  file(READ "${kernel_file}" kernel)
  set(${error} "" PARENT_SCOPE)
  string(FIND "${patch}" "--- old\n" position)
  while(NOT position EQUAL -1)
    math(EXPR position "${position} + 8")
    string(SUBSTRING "${patch}" ${position} -1 patch)
    string(FIND "${patch}" "--- new\n" new_position)
    string(FIND "${patch}" "--- end" end_position)
    string(SUBSTRING "${patch}" 0 ${new_position} old)
    math(EXPR new_begin "${new_position} + 8")
    math(EXPR new_length "${end_position} - ${new_begin}")
    string(SUBSTRING "${patch}" ${new_begin} ${new_length} new)

    string(FIND "${old}" "\n...\n" gap)
    if(gap EQUAL -1)
      set(head "${old}")
      set(tail "")
    else()
      math(EXPR head_length "${gap} + 1")
      math(EXPR tail_begin "${gap} + 5")
      string(SUBSTRING "${old}" 0 ${head_length} head)
      string(SUBSTRING "${old}" ${tail_begin} -1 tail)
    endif()
    string(FIND "${kernel}" "${head}" first)
    string(FIND "${kernel}" "${head}" last REVERSE)
    string(LENGTH "${head}" length)
    set(missing "${head}")
    if(NOT first EQUAL -1 AND first EQUAL last)
      math(EXPR behind "${first} + ${length}")
      string(SUBSTRING "${kernel}" ${behind} -1 rest)
      string(FIND "${rest}" "${tail}" tail_position)
      if(tail_position EQUAL -1)
        set(missing "${tail}")
      else()
        set(missing "")
        string(LENGTH "${tail}" tail_length)
        math(EXPR rest_begin "${tail_position} + ${tail_length}")
        string(SUBSTRING "${rest}" ${rest_begin} -1 rest)
        string(SUBSTRING "${kernel}" 0 ${first} before)
        string(CONCAT kernel "${before}" "${new}" "${rest}")
      endif()
    endif()
    if(missing)
      string(REGEX MATCH "[^ \n][^\n]*" line "${missing}")
      set(${error} "${line}" PARENT_SCOPE)
    endif()
    string(SUBSTRING "${patch}" ${end_position} -1 patch)
    string(FIND "${patch}" "--- old\n" position)
  endwhile()
  set(${result} "${kernel}" PARENT_SCOPE)
endfunction()

# Sets `result` to the text of the kernel with this variant alone, and `error` to what is wrong, or to nothing. A kernel lists
# its variants as `variant<...>("NAME", "SUMMARY")`, `Fitted<...>::variant("NAME", "SUMMARY")` or
# `Configured<number_of("NAME"), ...>::variant("SUMMARY")`, one behind the other; or it makes one of each line of a table, for
# `std::make_index_sequence<kTiles.size()>`.
function(gemm_keep_variant kernel variant result error)
  set(of_table "std::make_index_sequence<kTiles.size()>")
  string(FIND "${kernel}" "${of_table}" position)
  if(NOT position EQUAL -1)
    string(REPLACE "${of_table}" "std::index_sequence<number_of(\"${variant}\")>" kernel "${kernel}")
    string(REPLACE "  all.insert(all.begin(), by_shape);\n" "" kernel "${kernel}")  # it may choose any of them
    string(REPLACE "  all.push_back(in_lockstep());\n" "" kernel "${kernel}")
    set(${result} "${kernel}" PARENT_SCOPE)
    set(${error} "" PARENT_SCOPE)
    return()
  endif()
  set(rest "${kernel}")
  set(entry "(variant|Configured|Fitted)<[^\"]*\"([^\"]*)\"[^\"]*(\"[^\"]*\"[ \n]*)+\\)")
  set(kept "")
  set(before "")
  set(between "")
  while("${rest}" MATCHES "${entry}")
    set(text "${CMAKE_MATCH_0}")
    if("${CMAKE_MATCH_2}" STREQUAL "${variant}")
      string(APPEND kept "${text}")
    endif()
    string(FIND "${rest}" "${text}" position)
    string(LENGTH "${text}" length)
    if(between STREQUAL "")  # the first
      string(SUBSTRING "${rest}" 0 ${position} before)
      set(between " ")
    else()
      string(SUBSTRING "${rest}" 0 ${position} gap)
      string(APPEND between "${gap}")
    endif()
    math(EXPR position "${position} + ${length}")
    string(SUBSTRING "${rest}" ${position} -1 rest)
  endwhile()
  set(${error} "" PARENT_SCOPE)
  if(kept STREQUAL "")
    set(${error} "has no variant '${variant}' that is written like variant<...>(\"NAME\", \"SUMMARY\")" PARENT_SCOPE)
  elseif(NOT between MATCHES "^[ \n,]+$")
    set(${error} "does not list its variants one behind the other" PARENT_SCOPE)
  endif()
  set(${result} "${before}${kept}${rest}" PARENT_SCOPE)
endfunction()

# Writes the source of a patched kernel of the step and sets `source` to its path; `const gemm::Step& name()` is its kStep. It
# has `variant` alone, or with "" all of them. A further argument is the folder to write it in.
function(gemm_patch_step name patch_file step variant source)
  set(kernel_file "${PROJECT_SOURCE_DIR}/steps/${step}/kernel.cuh")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${patch_file}" "${kernel_file}")
  file(READ "${patch_file}" text)
  gemm_patch_field("${text}" "${patch_file}" file header "")
  set(patched_file "${kernel_file}")
  set(shown_file "steps/${step}/kernel.cuh")
  if(NOT header STREQUAL "")
    set(shown_file "common/${header}")
    if(EXISTS "${PROJECT_SOURCE_DIR}/steps/${step}/${header}")
      set(shown_file "steps/${step}/${header}")
    endif()
    set(patched_file "${PROJECT_SOURCE_DIR}/${shown_file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${patched_file}")
  endif()
  gemm_patch_kernel("${patch_file}" "${patched_file}" kernel missing)
  get_filename_component(patch "${patch_file}" NAME)
  set(patched_header "")
  if(NOT header STREQUAL "")
    set(patched_header "${kernel}")
    file(READ "${kernel_file}" kernel)
  endif()
  set(error "")
  if(missing)
    set(error "#error ${patch}: its 'old' lines must stand exactly once in ${shown_file}: ${missing}\n")
  elseif(NOT variant STREQUAL "")
    gemm_keep_variant("${kernel}" "${variant}" kernel wrong)
    if(wrong)
      set(error "#error ${patch}: steps/${step}/kernel.cuh ${wrong}\n")
    endif()
  endif()
  string(SUBSTRING "${step}" 0 2 number)
  string(REPLACE "namespace gemm::step_${number}" "namespace gemm::${name}" kernel "${kernel}")
  string(REGEX REPLACE "/mutant_([^/]*)$" "/\\1" folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")  # as reports name it
  if(ARGC GREATER 5)
    set(folder "${ARGV5}")
  endif()
  file(CONFIGURE OUTPUT "${folder}/kernel.cuh" CONTENT "@kernel@" @ONLY)
  # A patched header lies beside the kernel, which so finds it before the one that is right. Kernels are in their own namespace,
  # so one from a header is copied, too: the linker cannot discard a kernel that several objects have. The source names these
  # headers because a compiler cache does not look for one that has become nearer. What a header hands to a kernel is of types that a patched
  # header may hold, so such a header is copied, too.
  set(headers "${header}")
  foreach(shared_kernel IN ITEMS gemm/fitted/fitted_kernel.cuh split.cuh few_rows.cuh load_scales.cuh summing_ctas.cuh)
    if(NOT "${kernel}" MATCHES "#include \"${shared_kernel}\"" OR header STREQUAL shared_kernel)
      continue()
    endif()
    set(copied_file "${PROJECT_SOURCE_DIR}/common/${shared_kernel}")
    if(EXISTS "${PROJECT_SOURCE_DIR}/steps/${step}/${shared_kernel}")
      set(copied_file "${PROJECT_SOURCE_DIR}/steps/${step}/${shared_kernel}")
    endif()
    file(READ "${copied_file}" copied)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${copied_file}")
    string(REGEX REPLACE "namespace gemm(::step_${number})? {" "namespace gemm::${name} {" copied "${copied}")
    file(CONFIGURE OUTPUT "${folder}/${shared_kernel}" CONTENT "@copied@" @ONLY)
    string(APPEND headers " ${shared_kernel}")
  endforeach()
  if(NOT header STREQUAL "")
    string(REGEX REPLACE "namespace gemm(::step_${number})? {" "namespace gemm::${name} {" patched_header "${patched_header}")
    file(CONFIGURE OUTPUT "${folder}/${header}" CONTENT "@patched_header@" @ONLY)
  endif()
  file(RELATIVE_PATH shown "${PROJECT_BINARY_DIR}" "${folder}/kernel.cuh")
  string(REGEX REPLACE "^.*/steps/" "steps/" shown "${shown}")
  gemm_embed_text("${kernel}" "${name}" "${shown}" embedded)
  file(CONFIGURE OUTPUT "${folder}/patched.cpp" @ONLY CONTENT [[// Generated by cmake/GemmPatch.cmake. Beside this file: kernel.cuh @headers@
@error@namespace gemm::step_@number@ {}  // of the step's other headers
namespace gemm::@name@ {
using namespace gemm::step_@number@;
}
#include "kernel.cuh"

const gemm::Step& @name@();
const gemm::Step& @name@() { return gemm::@name@::kStep; }
@embedded@]])
  set(${source} "${folder}/patched.cpp" PARENT_SCOPE)
endfunction()

# Adds an object library of such sources of one step. Headers take as long as several kernels, so one compiler reads them for as many
# as a step usually has. Nothing is optimised: a run spends its time in the emulator. clang-tidy sees the step itself.
function(gemm_add_patched_library target step)
  add_library(${target} OBJECT ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12 EXPORT_COMPILE_COMMANDS OFF)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/steps/${step}")  # what else lies there
  target_compile_options(${target} PRIVATE -O0)
  gemm_read_headers_once(${target} O0)
  target_link_libraries(${target} PRIVATE gemm_options gemm_kernel_options gemm_headers)
endfunction()

# As a script: cmake -D PATCH=... -D KERNEL=... -D OUTPUT=... [-D VARIANT=...] -P cmake/GemmPatch.cmake
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  gemm_patch_kernel("${PATCH}" "${KERNEL}" patched_kernel missing)
  if(missing)
    message(FATAL_ERROR "${PATCH}: its 'old' lines must stand exactly once in ${KERNEL}: ${missing}")
  endif()
  if(DEFINED VARIANT)
    gemm_keep_variant("${patched_kernel}" "${VARIANT}" patched_kernel wrong)
    if(wrong)
      message(FATAL_ERROR "${PATCH}: ${KERNEL} ${wrong}")
    endif()
  endif()
  file(WRITE "${OUTPUT}" "${patched_kernel}")
endif()
