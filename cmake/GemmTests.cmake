# What ctest runs, known before anything is built: the names of the Catch2 test cases are read from the sources, and the
# REQUIRED_FILES of a test say what must be built for it. So `ctest -N -R PATTERN` answers at once, and
# `tools/test emulator -- -R PATTERN` builds only what it runs.
#
# A test is called <area>.<what it says>. Areas are the folders of tests/, and `ptxas`.

# Where one source or one function makes many tests, a list says which of them take seconds; elsewhere it is the tag [slow].
set(GEMM_SLOW_TESTS_FILE "${CMAKE_CURRENT_LIST_DIR}/../tests/slow.txt")
set(GEMM_SLOW_TESTS "")
if(EXISTS "${GEMM_SLOW_TESTS_FILE}")  # a copy of the project may come without tests
  file(STRINGS "${GEMM_SLOW_TESTS_FILE}" GEMM_SLOW_TESTS REGEX "^[^#]")
endif()

# Sets `label`: to slow, where it was fast and the test is listed.
macro(gemm_slow_or_fast name label)
  if("${${label}}" STREQUAL "fast" AND "${name}" IN_LIST GEMM_SLOW_TESTS)
    set(${label} slow)
  endif()
endmacro()

# What tools/test runs before a push has the label `push` beside `fast`: the emulator's rules, the units of the libraries and the harness,
# one mutant for each rule, and each step once. All that they compile must stay within a few minutes of one processor.
set(GEMM_PROGRAMS_BEFORE_A_PUSH tests_emulator tests_gemm tests_host tests_mutants tests_steps_once)

# Sets `cost` to what ctest sorts by where it has not run a test yet: the slow ones first, so that none is left running alone.
function(gemm_test_cost label cost)
  set(${cost} 0 PARENT_SCOPE)
  if(label MATCHES "^(slow|long)$")
    set(${cost} 10 PARENT_SCOPE)
  endif()
endfunction()

# Adds a test that runs a program of the project with the arguments that follow.
function(gemm_add_test name label program)
  gemm_slow_or_fast("${name}" label)
  set(configurations "")
  set(timeout 300)
  if(label STREQUAL "long")  # ctest runs it with -C Long, and not otherwise
    set(configurations CONFIGURATIONS Long)
    set(timeout 3600)
  endif()
  add_test(NAME "${name}" COMMAND ${program} ${ARGN} ${configurations})
  gemm_test_cost(${label} cost)
  if(label STREQUAL "fast" AND program IN_LIST GEMM_PROGRAMS_BEFORE_A_PUSH)
    list(APPEND label push)
  endif()
  set_tests_properties("${name}" PROPERTIES LABELS "${label}" TIMEOUT ${timeout} COST ${cost} REQUIRED_FILES "$<TARGET_FILE:${program}>")
endfunction()

# The same for some of the test cases of a Catch2 program. A run that meets none of them fails.
function(gemm_add_catch_test name label program)
  gemm_add_test("${name}" "${label}" ${program} ${ARGN})
  set_tests_properties("${name}" PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED: "
                                            FAIL_REGULAR_EXPRESSION "No test cases matched;No tests ran")
endfunction()

# Sets `names` and `tags` to those of the test cases in the sources that follow; "-" stands for no tags. Catch2 and CMake read
# some characters of a name as something else, so these are refused.
function(gemm_read_test_cases names tags)
  set(all_names "")
  set(all_tags "")
  foreach(source IN LISTS ARGN)
    file(READ "${source}" text)
    string(FIND "${text}" "TEST_CASE" position)
    while(NOT position EQUAL -1)
      string(SUBSTRING "${text}" ${position} -1 text)
      set(literals "(\"[^]\";[\\]+\"[ \n]*)+")  # a long name may be several
      if(NOT text MATCHES "^TEST_CASE\\([ \n]*(${literals})(,[ \n]*\"([^\"]+)\")?\\) {")
        string(REGEX MATCH "^[^\n]*\n?[^\n]*" line "${text}")
        message(FATAL_ERROR "${source}: a test case is written TEST_CASE(\"name\", \"[tags]\") {, and its name has none of "
                            "the characters ; [ ] and \\. This one is not: ${line}")
      endif()
      set(tag "${CMAKE_MATCH_4}")
      string(REGEX REPLACE "\"[ \n]*\"|^\"|\"[ \n]*$" "" name "${CMAKE_MATCH_1}")
      if(NOT tag)
        set(tag "-")
      endif()
      if(NOT tag MATCHES "\\[\\.")  # hidden: another test runs it
        list(APPEND all_names "${name}")
        list(APPEND all_tags "${tag}")
      endif()
      string(SUBSTRING "${text}" 9 -1 text)
      string(FIND "${text}" "TEST_CASE" position)
    endwhile()
  endforeach()
  set(${names} "${all_names}" PARENT_SCOPE)
  set(${tags} "${all_tags}" PARENT_SCOPE)
endfunction()

# Adds a test <prefix>.<test case> for each test case in the sources that follow, which are those of the program; the build
# fails when the program has others. Tags that are read here: [slow] is left out under the sanitizers, [long] runs
# only when asked for (tools/test --long). In the GPU build
# [device] needs a GPU (as does everything under the prefix `gpu`), and [emulator] is not run.
function(gemm_add_test_cases prefix program)
  gemm_read_test_cases(names tags ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  foreach(name tag IN ZIP_LISTS names tags)
    if(NOT GEMM_STEPS_BACKEND STREQUAL "gpu")
      set(label fast)
      if(tag MATCHES "\\[slow\\]")
        set(label slow)
      elseif(tag MATCHES "\\[long\\]")
        set(label long)
      endif()
    elseif(prefix STREQUAL "gpu" OR tag MATCHES "\\[device\\]")
      set(label device)
    elseif(tag MATCHES "\\[emulator\\]")
      continue()
    else()
      set(label host)
    endif()
    string(REPLACE "," "\\," pattern "${name}")  # or Catch2 takes it for two names
    gemm_add_catch_test("${prefix}.${name}" ${label} ${program} "${pattern}")
  endforeach()

  list(SORT names)
  list(JOIN names "\n" lines)
  set(list_of_cases "${CMAKE_CURRENT_BINARY_DIR}/${program}.cases")
  file(CONFIGURE OUTPUT "${list_of_cases}" CONTENT "@lines@" @ONLY)
  if(Catch2_VERSION VERSION_LESS 3)
    set(how --list-test-names-only)
  else()
    set(how --list-tests --verbosity quiet)
  endif()
  add_custom_command(
    TARGET ${program} POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -D "CASES=${list_of_cases}" -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}" -- ${CMAKE_CROSSCOMPILING_EMULATOR}
            "$<TARGET_FILE:${program}>" ${how}
    VERBATIM)
endfunction()

# As a script: cmake -D CASES=FILE -P cmake/GemmTests.cmake -- PROGRAM ARGUMENT...: does the program list these test cases?
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(command "")
  math(EXPR last "${CMAKE_ARGC} - 1")
  foreach(i RANGE ${last})
    if(DEFINED before_program)
      list(APPEND command "${CMAKE_ARGV${i}}")
    elseif(CMAKE_ARGV${i} STREQUAL "--")
      set(before_program TRUE)
    endif()
  endforeach()
  execute_process(COMMAND ${command} OUTPUT_VARIABLE listed)
  string(STRIP "${listed}" listed)
  string(REPLACE ";" "," listed "${listed}")
  string(REPLACE "\n" ";" listed "${listed}")
  list(TRANSFORM listed STRIP)
  list(SORT listed)
  file(STRINGS "${CASES}" expected)
  if(NOT listed STREQUAL expected)
    set(more ${listed})
    list(REMOVE_ITEM more ${expected})
    list(REMOVE_ITEM expected ${listed})
    message(FATAL_ERROR "The test cases of the program are not those that CMake read in its sources, so ctest would miss some. "
                        "Only in the program: '${more}'. Only in the sources: '${expected}'.")
  endif()
endif()
