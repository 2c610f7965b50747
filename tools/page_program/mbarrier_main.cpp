// What the site's figure of an mbarrier calls: a reader's script in the language of tools/play mbarrier.
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "kept.h"
#include "mbarrier_json.h"

namespace {

std::string failed(const char* sentence) {
  return nlohmann::json{{"error", sentence}}.dump();
}

}  // namespace

extern "C" {

EMSCRIPTEN_KEEPALIVE const char* page_mbarrier(const char* script) {
  try {
    const std::vector<play::Event> events = play::parse_script(script);
    return kept(play::script_json(script, events, play::run_script(events, true)));
  } catch (const std::exception& error) {
    return kept(failed(error.what()));
  }
}

EMSCRIPTEN_KEEPALIVE const char* page_trapped(const char* message) {
  return kept(failed(message));
}
}
