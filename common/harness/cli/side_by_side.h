// Jobs in processes of their own, with the output and the record of one process.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace harness {

/// Calls job(i, record) for i = 0, 1, ... below `count`; returns whether all returned true. Behind one that
/// returns false it goes on with after_failure(i), or ends where that is `count`. Jobs of the end run in up
/// to `processes - 1` other processes meanwhile. What they print and record appears in the order of i, folded
/// to the terminal's width. A job that fails there, or dies, is called again here: its report, its exception
/// and its record are those of this process. Before the call this process must not have started a thread that
/// a job needs.
bool run_side_by_side(std::size_t count, std::size_t processes,
                      const std::function<bool(std::size_t, nlohmann::json&)>& job,
                      const std::function<std::size_t(std::size_t)>& after_failure, nlohmann::json& record);

/// Whether this is one of the other processes.
bool runs_beside();

/// As many processes as there are cores, and no more than 8.
std::size_t side_by_side_processes();

}  // namespace harness
