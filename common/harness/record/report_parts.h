// A report of the emulator by its parts, for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace harness {

/// The lines of the report by their labels, and every place in a source that they name
/// (docs/schemas/emulate.schema.json). `file`: the kernel's file, whose name may have blanks; "" where it has
/// none.
nlohmann::ordered_json report_parts(const std::string& rule, const std::string& text,
                                    const std::string& file);

}  // namespace harness
