// Why the arrivals that ended a phase did not keep a stage from being filled while somebody reads it.
#pragma once

#include <string>
#include <vector>

#include "emulator/async/hopper.h"
#include "emulator/report/causes/barriers.h"
#include "emulator/report/report.h"

namespace emulator {

/// Of the arrivals at `empty` more than its phases need for what has come to the stage: who arrives for one
/// k-tile, as several warps of the reader's warpgroup do; or "".
std::string too_many_arrivals(const Gang& gang, const Mbarrier& empty, const Mbarrier& full,
                              const ReaderName& reader);
/// Why an arrival by the reader, or none, did not keep the stage from being filled.
std::string what_the_reader_missed(Report& report, const Gang& gang,
                                   const std::vector<Mbarrier::Event>& events, const Mbarrier& empty,
                                   Stamp reader, Where read_at, const Cta& target, const LoadRecord& load);

}  // namespace emulator
