# The libraries of common/, from the bottom up. gemm_add_library accepts only libraries that are defined above it, so an
# arrow of target_link_libraries points down and there is no circle; tests/tools/builds/test_layers.py holds the #includes to the
# same arrows. A folder inside another may belong to a library further down: what gemm_record computes from the samples is in
# harness/timing/statistics, and what an input element is in harness/verify/inputs, for the GPU's backend makes them, too.
#
#   gemm_headers   include paths: the kernels' headers of the backend that was picked, gemm/, the harness's headers
#   gemm_base      names, sizes, files: what all others need
#   gemm_backend   implements harness/backend/*.h, on the GPU or on the emulator
#   gemm_verify    inputs, references, the verifier
#   gemm_predict   bytes and cycles before measuring; what autotuning remembers
#   gemm_record    the record of a timed run, and its statistics
#   gemm_timing    races (on the emulator: one sentence that there is nothing to time)
#   gemm_trace     timelines
#   gemm_cli       the command line that programs share

include(GemmUnits)

# The steps that pages run.
set(GEMM_PAGE_STEPS "(0[4-9]|1[0-8]|73)_")

# What the emulator runs on: the files that differ are in emulator/native and emulator/wasm.
if(EMSCRIPTEN)
  set(GEMM_STEPS_MACHINE wasm)
else()
  set(GEMM_STEPS_MACHINE native)
endif()

add_library(gemm_headers INTERFACE)
if(EMSCRIPTEN)
  target_include_directories(gemm_headers INTERFACE "${PROJECT_SOURCE_DIR}/common/emulator/include")
elseif(GEMM_STEPS_BACKEND STREQUAL "emulator")
  # Defines what kernels declare as `extern __shared__`; initialises that property of every program.
  set(CMAKE_CXX_LINKER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/link_extern_shared")
  # First match wins: "ptx/memory.cuh" is the emulator's counterpart, "gemm/problem/gemm.h" the common header.
  target_include_directories(gemm_headers INTERFACE "${PROJECT_SOURCE_DIR}/common/emulator/include")
  # Line numbers for reports about kernels that the processor itself stops. The map lets build folders share a compiler cache.
  target_compile_options(gemm_headers INTERFACE -g1 "-fdebug-prefix-map=${PROJECT_BINARY_DIR}=build")
endif()
# The harness sees only headers that are the same on both backends, so that ccache compiles it once.
add_library(gemm_neutral_headers INTERFACE)
foreach(headers IN ITEMS gemm_headers gemm_neutral_headers)
  target_include_directories(${headers} INTERFACE "${PROJECT_SOURCE_DIR}/common")
  target_link_libraries(${headers} INTERFACE Threads::Threads fmt::fmt nlohmann_json::nlohmann_json)
endforeach()

# gemm_add_library(name HEADERS headers FOLDERS folder... COLD folder... DEPENDS library...): a static library of the C++ and
# CUDA sources in these folders of common/. What is in COLD is not optimised: parsing and printing are never hot, and their
# templates take long. Its own sources see only `headers`; a program that uses it links what it depends on, too.
function(gemm_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "" HEADERS "COLD;DEPENDS;FOLDERS")
  foreach(dependency IN LISTS library_DEPENDS)
    if(NOT TARGET ${dependency})
      message(FATAL_ERROR "${name} must not depend on ${dependency}: it is not a library below it (cmake/GemmLibraries.cmake).")
    endif()
  endforeach()
  set(sources "")
  set(units "")
  foreach(folder IN LISTS library_FOLDERS library_COLD)
    if(EMSCRIPTEN AND folder MATCHES "^(emulator/instrument|harness/backend)$")  # programs in CUDA's own words, and waiting for a GPU
      continue()
    endif()
    # A folder inside another one of the list is in that one's unit.
    set(unit "${folder}")
    foreach(above IN LISTS units)
      if(folder MATCHES "^${above}/")
        set(unit "${above}")
      endif()
    endforeach()
    list(APPEND units "${unit}")
    file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/${folder}/*.cpp")
    list(APPEND sources_of_${unit} ${found})
    if(GEMM_STEPS_BACKEND STREQUAL "gpu")
      file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/${folder}/*.cu")
      list(APPEND sources ${found})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES units)
  foreach(folder IN LISTS units)
    if(sources_of_${folder})
      string(REPLACE "/" "_" unit "${folder}")
      if("${sources_of_${folder}}" MATCHES "/gpu/")  # the emulator's build has another unit of this folder
        string(APPEND unit _gpu)
      endif()
      gemm_add_unit(sources "${unit}" "${PROJECT_SOURCE_DIR}/common" ${sources_of_${folder}})
      if(folder IN_LIST library_COLD AND NOT EMSCRIPTEN)
        set_source_files_properties("${GEMM_UNITS_DIR}/${unit}.cpp" PROPERTIES COMPILE_OPTIONS -O0)
      endif()
    endif()
  endforeach()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PRIVATE gemm_options ${library_HEADERS} INTERFACE gemm_headers ${library_DEPENDS})
endfunction()

gemm_add_library(gemm_base HEADERS gemm_neutral_headers COLD harness/base harness/verify/inputs gemm/problem)
if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  gemm_add_library(gemm_backend HEADERS gemm_headers FOLDERS harness/backend harness/backend/gpu ptx DEPENDS gemm_base)
else()
  gemm_add_library(
    gemm_backend
    HEADERS gemm_headers
    FOLDERS harness/backend emulator/machine emulator/machine/launch emulator/${GEMM_STEPS_MACHINE} emulator/memory emulator/sync emulator/async
            emulator/report emulator/report/causes emulator/instrument emulator/timeline emulator/ledger emulator/explore
    DEPENDS gemm_base)
  # Texts, the counters of every access, and timelines: compiled in half of the time, and as fast.
  if(NOT GEMM_STEPS_SANITIZE)
    foreach(folder IN ITEMS report timeline ledger)
      set_source_files_properties("${GEMM_UNITS_DIR}/emulator_${folder}.cpp" PROPERTIES COMPILE_OPTIONS -O1)
    endforeach()
  else()
    # The scheduler, the clocks and the history of every byte: under the sanitizers the only sources whose tests gain more than
    # their compilation loses.
    foreach(folder IN ITEMS machine native memory)
      set_source_files_properties("${GEMM_UNITS_DIR}/emulator_${folder}.cpp" PROPERTIES COMPILE_OPTIONS -O1)
    endforeach()
  endif()
  if(EMSCRIPTEN)  # fibers end with an exception, and what is not hot must be small: a page fetches it
    set_source_files_properties("${GEMM_UNITS_DIR}/emulator_wasm.cpp" PROPERTIES COMPILE_OPTIONS -fexceptions)
    foreach(unit IN ITEMS emulator_report emulator_timeline emulator_ledger emulator_explore harness_base harness_verify)
      set_source_files_properties("${GEMM_UNITS_DIR}/${unit}.cpp" PROPERTIES COMPILE_OPTIONS -Oz)
    endforeach()
    foreach(unit IN ITEMS emulator_async emulator_sync)
      set_source_files_properties("${GEMM_UNITS_DIR}/${unit}.cpp" PROPERTIES COMPILE_OPTIONS -Os)
    endforeach()
  else()
    target_link_libraries(gemm_backend PUBLIC Boost::context ${CMAKE_DL_LIBS})
  endif()
  # What the sources of common/gemm say, for the emulator to read.
  set(header_sources "${GEMM_GENERATED_DIR}/header_sources.cpp")
  set(of_steps "")
  if(EMSCRIPTEN)
    set(of_steps "-DSTEPS=${GEMM_PAGE_STEPS}")
  endif()
  file(GLOB gemm_headers_told CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/common/gemm/*/*.cuh")
  add_custom_command(
    OUTPUT "${header_sources}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${header_sources}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" ${of_steps} -P
            "${PROJECT_SOURCE_DIR}/cmake/write_header_sources.cmake"
    DEPENDS ${gemm_headers_told} "${PROJECT_SOURCE_DIR}/cmake/write_header_sources.cmake"
    COMMENT ""
    VERBATIM)
  target_sources(gemm_backend PRIVATE "${header_sources}")
endif()
gemm_add_library(
  gemm_verify
  HEADERS gemm_neutral_headers
  FOLDERS harness/verify harness/verify/types harness/verify/epilogue harness/verify/workload
  DEPENDS gemm_backend)
if(EMSCRIPTEN)  # pages time nothing and have no command line
  return()
endif()
gemm_add_library(gemm_predict HEADERS gemm_neutral_headers COLD harness/predict DEPENDS gemm_backend)
gemm_add_library(gemm_record HEADERS gemm_neutral_headers COLD harness/record harness/timing/statistics DEPENDS gemm_base gemm_build_info)
gemm_add_library(
  gemm_timing
  HEADERS gemm_headers
  COLD harness/timing harness/timing/${GEMM_STEPS_BACKEND}
  DEPENDS gemm_record gemm_predict gemm_verify)
gemm_add_library(gemm_trace HEADERS gemm_neutral_headers COLD harness/trace DEPENDS gemm_timing)
gemm_add_library(gemm_cli HEADERS gemm_neutral_headers COLD harness/cli DEPENDS gemm_trace)

target_link_libraries(gemm_cli PRIVATE CLI11::CLI11)
foreach(library IN ITEMS gemm_record gemm_timing gemm_trace gemm_cli)
  set_target_properties(${library} PROPERTIES EXCLUDE_FROM_ALL ${GEMM_STEPS_SANITIZE})
endforeach()
if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  # Kernels of the harness itself run on everything the steps run on.
  foreach(library IN ITEMS gemm_backend gemm_timing)
    target_compile_options(${library} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${GEMM_GENCODE_SM80};${GEMM_GENCODE_SM90A}>")
    target_include_directories(${library} SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
    target_link_libraries(${library} PUBLIC ${CMAKE_DL_LIBS})
  endforeach()
endif()
