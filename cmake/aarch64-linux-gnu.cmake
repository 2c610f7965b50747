# Cross-compiles for 64-bit Arm with Debian's compiler (g++-aarch64-linux-gnu); what is built runs under qemu-user. The
# libraries come from a folder in which Debian's packages for arm64 are unpacked: tools/lib/arm64.sh makes it.
#
#   tools/lib/arm64.sh && cmake --preset emulator-aarch64 && cmake --build build/emulator-aarch64 --target tests_emulator
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(default_sysroot "${CMAKE_CURRENT_LIST_DIR}/../.toolchain/arm64")
if(DEFINED ENV{GEMM_STEPS_SYSROOT})
  set(default_sysroot "$ENV{GEMM_STEPS_SYSROOT}")
endif()
get_filename_component(default_sysroot "${default_sysroot}" ABSOLUTE)
set(GEMM_STEPS_SYSROOT "${default_sysroot}" CACHE PATH "Debian's packages for arm64, unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GEMM_STEPS_SYSROOT)
if(NOT IS_DIRECTORY "${GEMM_STEPS_SYSROOT}/usr/lib/aarch64-linux-gnu")
  message(FATAL_ERROR "GEMM_STEPS_SYSROOT is '${GEMM_STEPS_SYSROOT}'; it must be a folder with Debian's packages for arm64 "
                      "(tools/lib/arm64.sh makes one).")
endif()
set(CMAKE_FIND_ROOT_PATH "${GEMM_STEPS_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The C library is the compiler's own.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${GEMM_STEPS_SYSROOT}/usr/lib/aarch64-linux-gnu")
# No -L and no -E here: cmake -P takes them for its own. PATH: addr2line and its kin for programs of Arm, which reports ask for source lines.
set(CMAKE_CROSSCOMPILING_EMULATOR
    "env;PATH=${GEMM_STEPS_SYSROOT}/bin:$ENV{PATH};QEMU_LD_PREFIX=/usr/aarch64-linux-gnu;QEMU_SET_ENV=LD_LIBRARY_PATH=${GEMM_STEPS_SYSROOT}/usr/lib/aarch64-linux-gnu:/usr/aarch64-linux-gnu/lib;qemu-aarch64")
