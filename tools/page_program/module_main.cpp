// What JavaScript calls. A module runs one kernel and is thrown away: what a kernel that failed has left
// behind is nobody's concern.
#include "kept.h"
#include "run.h"

extern "C" {

EMSCRIPTEN_KEEPALIVE const char* page_describe() {
  return kept(page::describe());
}

EMSCRIPTEN_KEEPALIVE const char* page_run(const char* kernel, const char* shape, const char* seed,
                                          const char* completion) {
  return kept(page::run({kernel, shape, seed, completion}));
}

EMSCRIPTEN_KEEPALIVE const char* page_trapped(const char* message) {
  return kept(page::trapped(message));
}
}
