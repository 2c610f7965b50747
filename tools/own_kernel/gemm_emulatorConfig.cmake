# find_package(gemm_emulator): kernels' files as programs and tests of another project, run on the emulator.
#
#   gemm_emulator_add_program(NAME FILE.cu [DEFINITIONS name[=value]...] [INCLUDE_DIRECTORIES folder...])
#     A program NAME that runs check_kernel, or main, of FILE.cu under many schedules. It is part of the default build.
#   gemm_emulator_add_test(NAME FILE.cu [ARGUMENTS argument...] [DEFINITIONS ...] [INCLUDE_DIRECTORIES ...])
#     The same, and a test of that name that runs it with these arguments (PROGRAM --help).

get_filename_component(GEMM_EMULATOR_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." REALPATH)
set(GEMM_EMULATOR_CC "${GEMM_EMULATOR_PREFIX}/bin/emulate-cc")
if(NOT EXISTS "${GEMM_EMULATOR_CC}")
  set(gemm_emulator_FOUND FALSE)
  set(gemm_emulator_NOT_FOUND_MESSAGE "there is no ${GEMM_EMULATOR_CC}: install the emulator again")
  return()
endif()

function(gemm_emulator_add_program name file)
  cmake_parse_arguments(PARSE_ARGV 2 program "" "" "DEFINITIONS;INCLUDE_DIRECTORIES")
  if(program_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gemm_emulator_add_program(${name}) does not know '${program_UNPARSED_ARGUMENTS}'.")
  endif()
  get_filename_component(source "${file}" ABSOLUTE)
  if(NOT EXISTS "${source}")
    message(FATAL_ERROR "gemm_emulator_add_program(${name}): there is no file ${source}.")
  endif()
  file(RELATIVE_PATH shown "${PROJECT_SOURCE_DIR}" "${source}")
  set(arguments "")
  foreach(definition IN LISTS program_DEFINITIONS)
    list(APPEND arguments "-D${definition}")
  endforeach()
  foreach(folder IN LISTS program_INCLUDE_DIRECTORIES)
    get_filename_component(folder "${folder}" ABSOLUTE)
    list(APPEND arguments "-I${folder}")
  endforeach()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${GEMM_EMULATOR_CC}" "${source}" -o "${output}" --name "${shown}" --depfile "${output}.d" ${arguments}
    DEPENDS "${source}" "${GEMM_EMULATOR_CC}"
    DEPFILE "${output}.d"
    COMMENT "Compiling ${shown} for the emulator"
    VERBATIM)
  add_custom_target(${name}_program ALL DEPENDS "${output}")
endfunction()

function(gemm_emulator_add_test name file)
  cmake_parse_arguments(PARSE_ARGV 2 test "" "" "ARGUMENTS;DEFINITIONS;INCLUDE_DIRECTORIES")
  gemm_emulator_add_program("${name}" "${file}" ${test_UNPARSED_ARGUMENTS} DEFINITIONS ${test_DEFINITIONS} INCLUDE_DIRECTORIES
                            ${test_INCLUDE_DIRECTORIES})
  add_test(NAME "${name}" COMMAND "${CMAKE_CURRENT_BINARY_DIR}/${name}" ${test_ARGUMENTS})
endfunction()
