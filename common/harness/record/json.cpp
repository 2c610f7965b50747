#include "harness/record/json.h"

#include <fmt/format.h>

#include <string>

namespace harness {
namespace {

constexpr const char* kOptional = "choice";    // of a variant that chooses by shape; older records have none
constexpr const char* kEpilogue = "epilogue";  // where D is not A * B^T alone

Error wrong_type(const std::string& path, const char* wanted, const nlohmann::json& got) {
  return Error(fmt::format("the record's field '{}' must be {}, but it is {}", path.empty() ? "(top)" : path,
                           wanted,
                           got.is_null() ? "null" : fmt::format("the {} {}", got.type_name(), got.dump())));
}

/// Throws Error that names the first field of `like` that `json` lacks or holds in another type. Every
/// element of an array must be like the first one of `like`. What else `json` holds does not matter.
void check_form(const nlohmann::json& json, const nlohmann::json& like, const std::string& path) {
  if (like.is_object()) {
    if (!json.is_object()) throw wrong_type(path, "an object", json);
    for (const auto& [key, value] : like.items()) {
      const std::string field = path.empty() ? key : fmt::format("{}.{}", path, key);
      if (json.contains(key))
        check_form(json.at(key), value, field);
      else if (key != kOptional && key != kEpilogue)
        throw Error(fmt::format("the record has no field '{}'", field));
    }
  } else if (like.is_array()) {
    if (!json.is_array()) throw wrong_type(path, "an array", json);
    for (std::size_t i = 0; i < json.size(); ++i)
      check_form(json[i], like.front(), fmt::format("{}[{}]", path, i));
  } else if (like.is_string() && !json.is_string()) {
    throw wrong_type(path, "a string", json);
  } else if (like.is_boolean() && !json.is_boolean()) {
    throw wrong_type(path, "true or false", json);
  } else if (like.is_number_integer() && !json.is_number_integer()) {
    throw wrong_type(path, "a whole number", json);
  } else if (like.is_number_unsigned() && !json.is_number_unsigned() && json.get<std::int64_t>() < 0) {
    throw wrong_type(path, "at least 0", json);  // to the library, -1 equals 2^64 - 1
  } else if (like.is_number() && !json.is_number()) {
    throw wrong_type(path, "a number", json);
  }
}

/// "/shapes/1/m" as the errors write it: "shapes[1].m".
std::string field_name(nlohmann::json::json_pointer pointer) {
  std::string name;
  for (; !pointer.empty(); pointer.pop_back()) {
    const std::string& part = pointer.back();
    const bool is_index = part.find_first_not_of("0123456789") == std::string::npos;
    const bool is_first = pointer.parent_pointer().empty();
    name.insert(0, is_index ? fmt::format("[{}]", part) : (is_first ? part : "." + part));
  }
  return name;
}

/// The library converts a number that does not fit, and a name that it does not know, to something else
/// without a word. What was read differs from `json` then; throws Error that names the first such field.
void check_values(const nlohmann::json& json, const nlohmann::json& as_read) {
  for (const nlohmann::json& change : nlohmann::json::diff(as_read, json)) {
    if (change.at("op") != "replace") continue;  // "add": a field that this program does not know
    const nlohmann::json::json_pointer pointer(change.at("path").get<std::string>());
    throw Error(fmt::format("the record's field '{}' cannot be {}: it would be read as {}",
                            field_name(pointer), json.at(pointer).dump(), as_read.at(pointer).dump()));
  }
}

Record read_part(const nlohmann::json& json, const char* key) {
  if (!json.contains(key)) throw Error(fmt::format("the record has no field '{}'", key));
  try {
    return record_from_json(json.at(key));
  } catch (const Error& error) {
    throw Error(fmt::format("in the part '{}': {}", key, error.what()));
  }
}

}  // namespace

void to_json(nlohmann::json& json, const ContestantRecord& contestant) {
  json = {{"name", contestant.name},
          {"variant", contestant.variant},
          {"kind", contestant.kind},
          {"median_us", contestant.median_us},
          {"q1_us", contestant.q1_us},
          {"q3_us", contestant.q3_us},
          {"tflops", contestant.tflops},
          {"to_cublaslt", contestant.to_cublaslt},
          {"ceiling_share", contestant.ceiling_share},
          {"verdict", contestant.verdict},
          {"samples_us", contestant.samples_us}};
  if (!contestant.epilogue.empty()) json[kEpilogue] = contestant.epilogue;
  if (!contestant.chosen.empty()) json[kOptional] = {{"variant", contestant.chosen}, {"why", contestant.why}};
}

void from_json(const nlohmann::json& json, ContestantRecord& contestant) {
  json.at("name").get_to(contestant.name);
  json.at("variant").get_to(contestant.variant);
  json.at("kind").get_to(contestant.kind);
  json.at("median_us").get_to(contestant.median_us);
  json.at("q1_us").get_to(contestant.q1_us);
  json.at("q3_us").get_to(contestant.q3_us);
  json.at("tflops").get_to(contestant.tflops);
  json.at("to_cublaslt").get_to(contestant.to_cublaslt);
  json.at("ceiling_share").get_to(contestant.ceiling_share);
  json.at("verdict").get_to(contestant.verdict);
  json.at("samples_us").get_to(contestant.samples_us);
  if (json.contains(kEpilogue)) json.at(kEpilogue).get_to(contestant.epilogue);
  if (!json.contains(kOptional)) return;
  json.at(kOptional).at("variant").get_to(contestant.chosen);
  json.at(kOptional).at("why").get_to(contestant.why);
}

void to_json(nlohmann::json& json, const ShapeRecord& shape) {
  json = {{"m", shape.shape.m},
          {"n", shape.shape.n},
          {"k", shape.shape.k},
          {"rotated_buffers", shape.rotated_buffers},
          {"conditions", shape.conditions},
          {"contestants", shape.contestants}};
  if (!shape.epilogue.empty()) json[kEpilogue] = shape.epilogue;
}

void from_json(const nlohmann::json& json, ShapeRecord& shape) {
  json.at("m").get_to(shape.shape.m);
  json.at("n").get_to(shape.shape.n);
  json.at("k").get_to(shape.shape.k);
  json.at("rotated_buffers").get_to(shape.rotated_buffers);
  json.at("conditions").get_to(shape.conditions);
  json.at("contestants").get_to(shape.contestants);
  if (json.contains(kEpilogue)) json.at(kEpilogue).get_to(shape.epilogue);
}

Record record_from_json(const nlohmann::json& json) {
  check_form(json, {{"schema", kRecordSchema}}, "");
  if (json.at("schema") != kRecordSchema)
    throw Error(fmt::format("the record has schema {}; this program reads schema {}",
                            json.at("schema").dump(), kRecordSchema));
  Record like;
  ShapeRecord& shape = like.shapes.emplace_back();
  shape.conditions.throttle_reasons = {""};
  ContestantRecord& contestant = shape.contestants.emplace_back();
  contestant.samples_us = {0};
  contestant.chosen = "a variant";
  contestant.epilogue = shape.epilogue = "an epilogue";
  check_form(json, like, "");
  auto record = json.get<Record>();
  check_values(json, record);
  return record;
}

void to_json(nlohmann::json& json, const SuiteRecord& suite) {
  // The summary is for whoever reads the file without this program; reading it back derives it again.
  nlohmann::json summary = nlohmann::json::array();
  for (const SuiteSummary& each : summarize(suite)) {
    summary.push_back({{"name", each.name},
                       {"variant", each.variant},
                       {"burst_shapes", each.burst_shapes},
                       {"geometric_mean", each.geometric_mean},
                       {"worst", each.worst},
                       {"worst_at",
                        {{"m", each.worst_shape.m},
                         {"n", each.worst_shape.n},
                         {"k", each.worst_shape.k},
                         {"mode", each.worst_mode}}}});
  }
  json = {{"schema", kRecordSchema},
          {"burst", suite.burst},
          {"sustained", suite.sustained},
          {"summary", summary}};
}

SuiteRecord suite_from_json(const nlohmann::json& json) {
  SuiteRecord suite{.burst = read_part(json, "burst"), .sustained = read_part(json, "sustained")};
  if (suite.burst.mode != TimingMode::kBurst || suite.sustained.mode != TimingMode::kSustained)
    throw Error("the parts 'burst' and 'sustained' of the record were not timed in these modes");
  return suite;
}

std::string to_string(TimingMode mode) {
  return nlohmann::json(mode);
}

std::string to_string(Verdict verdict) {
  return nlohmann::json(verdict);
}

}  // namespace harness
