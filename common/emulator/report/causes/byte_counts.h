// Counts of bytes: those that an mbarrier expects and does not get, or gets and does not expect, and boxes
// that are larger than their destination or go elsewhere.
#pragma once

#include <string>

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"

namespace emulator {

/// Of a deadlock: bytes came to an mbarrier at which nobody of its CTA has ever arrived, and another CTA of
/// the cluster expects its own. False where that is not so.
bool explain_unexpected_bytes(Report& report, const Gang& gang);
/// A deadlock: mbarriers that wait for bytes and for nothing else, when no copy is under way. False where
/// that is not so, here and below.
bool explain_missing_bytes(Report& report, const Gang& gang);
/// `thread` reads bytes at `address` that no copy of the phase that it has waited for has brought, and other
/// copies bring their like to another stage: says where.
void explain_not_brought(Report& report, const Thread& thread, std::uintptr_t address);
/// `load` brings more than the member holds that it begins in, and `bytes` ("stage[1].a[0][0] (shared +
/// ...)") lie behind its end: says how much would fit. False where that is not so.
bool explain_too_large_box(Report& report, const LoadRecord& load, const std::string& bytes);

}  // namespace emulator
