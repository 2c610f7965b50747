#include "harness/record/json.h"

namespace harness {

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
  if (!contestant.epilogue.empty()) json["epilogue"] = contestant.epilogue;
  if (!contestant.chosen.empty()) json["choice"] = {{"variant", contestant.chosen}, {"why", contestant.why}};
}

void to_json(nlohmann::json& json, const ShapeRecord& shape) {
  json = {{"m", shape.shape.m},
          {"n", shape.shape.n},
          {"k", shape.shape.k},
          {"rotated_buffers", shape.rotated_buffers},
          {"conditions", shape.conditions},
          {"contestants", shape.contestants}};
  if (!shape.epilogue.empty()) json["epilogue"] = shape.epilogue;
  if (!shape.tuned.empty()) json["tuned"] = shape.tuned;
}

void from_json(const nlohmann::json& json, ContestantRecord& contestant) {
  json.at("name").get_to(contestant.name);
  json.at("variant").get_to(contestant.variant);
  json.at("kind").get_to(contestant.kind);
  json.at("samples_us").get_to(contestant.samples_us);
  contestant.epilogue = json.value("epilogue", "");
  if (!json.contains("choice")) return;
  json.at("choice").at("variant").get_to(contestant.chosen);
  json.at("choice").at("why").get_to(contestant.why);
}

void from_json(const nlohmann::json& json, ShapeRecord& shape) {
  shape.shape = {json.at("m"), json.at("n"), json.at("k")};
  json.at("rotated_buffers").get_to(shape.rotated_buffers);
  json.at("conditions").get_to(shape.conditions);
  json.at("contestants").get_to(shape.contestants);
  shape.epilogue = json.value("epilogue", "");
  shape.tuned = json.value("tuned", "");
  derive(shape);
}

void to_json(nlohmann::json& json, const Record& record) {
  json = {{"schema", record.schema},   {"device", record.device}, {"cublas_version", record.cublas_version},
          {"commit", record.commit},   {"date", record.date},     {"seed", record.seed},
          {"pattern", record.pattern}, {"mode", record.mode},     {"idle_ms", record.idle_ms},
          {"rounds", record.rounds},   {"shapes", record.shapes}};
}

void to_json(nlohmann::json& json, const SuiteRecord& suite) {
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

std::string to_string(TimingMode mode) {
  return nlohmann::json(mode);
}

std::string to_string(Verdict verdict) {
  return nlohmann::json(verdict);
}

}  // namespace harness
