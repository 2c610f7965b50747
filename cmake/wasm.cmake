# Compiles for WebAssembly with Emscripten, Debian's or another one: what builds is for browsers and node.
#
#   cmake --preset emulator-wasm && cmake --build build/emulator-wasm --target page_11
find_program(GEMM_EMCC em++)
if(NOT GEMM_EMCC)
  message(FATAL_ERROR "em++ was not found: install Emscripten ('apt-get install emscripten'), or build the site with 'tools/site --emulator', "
                      "which does.")
endif()
file(REAL_PATH "${GEMM_EMCC}" emcc_file)
get_filename_component(emscripten_folder "${emcc_file}" DIRECTORY)
set(CMAKE_CXX_FLAGS_INIT "-include ${CMAKE_CURRENT_LIST_DIR}/../common/emulator/wasm/bit_cast.h")
include("${emscripten_folder}/cmake/Modules/Platform/Emscripten.cmake")
# Debian's Emscripten does not know where Debian puts the JavaScript that it needs.
set(CMAKE_CXX_LINKER_LAUNCHER "env;NODE_PATH=/usr/share/nodejs")
