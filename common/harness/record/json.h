// Records as JSON, with nlohmann's serializers: `nlohmann::json json = record;`. Only the scripts in tools
// read them. docs/decisions/011-records-with-nlohmann.md.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/record/record.h"
#include "harness/record/suite.h"

namespace harness {

NLOHMANN_JSON_SERIALIZE_ENUM(TimingMode,
                             {{TimingMode::kBurst, "burst"}, {TimingMode::kSustained, "sustained"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Verdict, {{Verdict::kFaster, "FASTER"},
                                       {Verdict::kSlower, "SLOWER"},
                                       {Verdict::kAmbiguous, "AMBIGUOUS"}})
NLOHMANN_JSON_SERIALIZE_ENUM(ContestantKind, {{ContestantKind::kStep, "step"},
                                              {ContestantKind::kBaseline, "baseline"},
                                              {ContestantKind::kCeiling, "ceiling"}})

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceInfo, name, is_emulator, compute_capability, sm_count,
                                   max_threads_per_sm, max_ctas_per_sm, registers_per_sm, shared_bytes_per_sm,
                                   shared_bytes_per_cta, reserved_shared_bytes, l2_bytes, memory_bytes,
                                   memory_free_bytes, clock_hz, memory_bytes_per_second, driver_version,
                                   runtime_version)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ratio, median, low, high)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Conditions, sm_clock_mhz_min, sm_clock_mhz_median, sm_clock_mhz_max,
                                   power_w_median, power_w_max, temperature_c_max, throttle_reasons)

void to_json(nlohmann::json& json, const ContestantRecord& contestant);
void to_json(nlohmann::json& json, const ShapeRecord& shape);
void to_json(nlohmann::json& json, const Record& record);
/// What derive() does not fill in is read, and then it is called.
void from_json(const nlohmann::json& json, ContestantRecord& contestant);
void from_json(const nlohmann::json& json, ShapeRecord& shape);
void to_json(nlohmann::json& json, const SuiteRecord& suite);

}  // namespace harness
