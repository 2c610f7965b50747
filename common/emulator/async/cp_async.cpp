#include "emulator/async/cp_async.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "emulator/async/hopper.h"
#include "emulator/explore/left_out.h"
#include "emulator/ledger/ledger.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/counters.h"
#include "emulator/report/report.h"
#include "emulator/timeline/timeline.h"

namespace emulator {
namespace {

constexpr char kZeros = 0;  // the source of a copy that writes zeros

constexpr const char* kCpAsyncSection = "PTX ISA, \"cp.async\", \"cp.async.wait_group\"";

}  // namespace

CpAsyncEngine& cp_async_engine(const char* what, Where where) {
  Gang& gang = *this_thread(what, where).cta->gang;
  if (!gang.cp_async) {
    auto engine = std::make_unique<CpAsyncEngine>(gang);
    gang.cp_async = engine.get();
    gang.engines.push_back(std::move(engine));
  }
  return *gang.cp_async;
}

void CpAsyncEngine::issue(const char* what, void* shared, const void* global, unsigned bytes,
                          int source_bytes, Where where) {
  Thread& thread = running_thread();
  if (source_bytes < 0 || static_cast<unsigned>(source_bytes) > bytes) {
    fail(
        "cp-async-size",
        Report("{} gets a source size of {} bytes", what, source_bytes)
            .line("where", where.text())
            .line("by", name_thread(thread))
            .rule(fmt::format("between 0 and {} bytes may be read, and the rest is filled with zeros", bytes),
                  kCpAsyncSection)
            .str());
  }
  const auto source = reinterpret_cast<std::uintptr_t>(global);
  if (source % bytes != 0) {
    fail("global-misaligned",
         Report("{} reads from a misaligned address", what)
             .line("where", where.text())
             .line("by", name_thread(thread))
             .line("address", "{}, {:#x}: {} bytes off a multiple of {}", name_address(source), source,
                   source % bytes, bytes)
             .rule("source and destination must be multiples of the copy size", kCpAsyncSection)
             .str());
  }
  if (context.counters) {
    count_access(what, true, shared, bytes, where);
    if (source_bytes > 0) count_access(what, false, global, static_cast<unsigned>(source_bytes), where);
  }
  // Reads of the source and the write of the destination may happen from now on. Neither may meet an access
  // that is not ordered before this one.
  for (unsigned done = 0; done < static_cast<unsigned>(source_bytes);) {
    const unsigned piece = std::bit_floor(static_cast<unsigned>(source_bytes) - done);
    check_global(static_cast<const unsigned char*>(global) + done, piece, Access::kRead, where);
    done += piece;
  }
  issuing_ = global;
  check_shared(shared, bytes, Access::kWrite, where);
  issuing_ = nullptr;
  const Cta& cta = *thread.cta;
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(shared) - cta.dynamic_window.begin;
  if (offset < cta.dynamic_window.bytes) {
    if (sources_.empty()) sources_.resize(gang_.ctas.size());
    std::vector<const void*>& sources = sources_[cta.index_in_gang];
    if (sources.empty()) sources.resize(cta.dynamic_window.bytes / 16 + 1);
    sources[offset / 16] = source_bytes > 0 ? global : &kZeros;
  }

  if (free_.empty()) {
    operations_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(operations_.size()));
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  Stream& stream = streams_[&thread];
  operations_[id - 1] = {.id = id,
                         .what = what,
                         .thread = &thread,
                         .shared = static_cast<unsigned char*>(shared),
                         .global = static_cast<const unsigned char*>(global),
                         .bytes = bytes,
                         .source_bytes = static_cast<unsigned>(source_bytes),
                         .group = stream.committed + 1,
                         .where = where,
                         .waits = stream.waits};
  if (timeline_on()) {
    log_global(OperationKind::kCpAsync, global, static_cast<unsigned>(source_bytes), where);
  }
  stream.operations.push_back(id);
  mark_pending(shared, bytes, id);
  if (gang_.grid.options.completion == Completion::kEarliest) {
    land(operations_[id - 1]);
  } else {
    std::memset(shared, 0xff, bytes);
    under_way_.push_back(id);
  }
  ++gang_.progress;
}

void CpAsyncEngine::commit(Where where) {
  if (is_left_out("cp_async_commit_group", where)) return;
  if (timeline_on()) log_together(OperationKind::kCpAsyncCommit, 0, 0, 0, where);
  Stream& stream = streams_[&running_thread()];
  ++stream.committed;
  stream.committed_at = where;
}

void CpAsyncEngine::wait_groups(std::uint64_t pending, Where where) {
  if (is_left_out("cp_async_wait_group", where, pending)) return;
  Thread& thread = running_thread();
  Stream& stream = streams_[&thread];
  stream.since_wait_before = stream.committed - stream.at_wait;
  stream.at_wait = stream.committed;
  stream.left = pending;
  ++stream.waits;
  stream.waited = where;
  if (ledger_on()) ledger_group_wait("cp.async.wait_group", pending, where);
  if (stream.committed > pending) finish(thread, stream, stream.committed - pending);
  gang_.yield();
}

void CpAsyncEngine::wait_all(Where where) {
  if (is_left_out("cp_async_wait_all", where)) return;
  Thread& thread = running_thread();
  Stream& stream = streams_[&thread];
  ++stream.waits;
  stream.waited = where;
  stream.at_wait = stream.committed;
  stream.left = 0;
  finish(thread, stream, stream.committed + 1);
  stream.finished = std::min(stream.finished, stream.committed);
  gang_.yield();
}

std::vector<CpAsyncEngine::Handed> CpAsyncEngine::hand_over() {
  std::vector<Handed> handed;
  Stream& stream = streams_[&running_thread()];
  for (const std::uint32_t id : stream.operations) {
    const Operation& operation = operations_[id - 1];
    handed.push_back({operation.shared, operation.global, operation.bytes, operation.source_bytes,
                      operation.group, operation.where});
    forget(id);
    free_.push_back(id);
  }
  stream.operations.clear();
  return handed;
}

void CpAsyncEngine::land(Operation& operation) {
  unsigned char* shared = own_bytes(*operation.thread->cta, operation.shared);
  std::memcpy(shared, operation.global, operation.source_bytes);
  std::memset(shared + operation.source_bytes, 0, operation.bytes - operation.source_bytes);
  operation.landed = true;
}

void CpAsyncEngine::forget(std::uint32_t id) {
  // Mostly it is one of the first, of which there are thousands behind it: they are moved, and not looked at.
  const auto found = std::find(under_way_.begin(), under_way_.end(), id);
  if (found != under_way_.end()) under_way_.erase(found);
}

void CpAsyncEngine::finish(Thread& thread, Stream& stream, std::uint64_t group) {
  std::vector<std::uint32_t> left;
  for (const std::uint32_t id : stream.operations) {
    Operation& operation = operations_[id - 1];
    if (operation.group > group) {
      left.push_back(id);
      continue;
    }
    if (!operation.landed) {
      land(operation);
      forget(id);
    }
    mark_copied(operation.shared, operation.bytes, id, thread, context.now, operation.where);
    if (ledger_on()) ledger_copied(thread, operation.shared, operation.bytes);
    free_.push_back(id);
  }
  stream.operations = std::move(left);
  // Copies that also arrive at an mbarrier are no less waited for.
  if (gang_.hopper) gang_.hopper->copies.finish_handed(thread, group);
  stream.finished = std::max(stream.finished, group);
}

void CpAsyncEngine::complete_one(Random& random) {
  const std::size_t chosen = random.below(static_cast<std::uint32_t>(under_way_.size()));
  land(operations_[under_way_[chosen] - 1]);
  under_way_[chosen] = under_way_.back();
  under_way_.pop_back();
}

void CpAsyncEngine::thread_exits(Thread& thread) {
  const auto found = streams_.find(&thread);
  if (found == streams_.end()) return;
  if (found->second.operations.empty()) {
    streams_.erase(found);
    return;
  }
  const Operation& operation = operations_[found->second.operations.front() - 1];
  const std::uint64_t committed = found->second.committed;
  fail("cp-async-pending-at-exit",
       Report("a thread returns from the kernel with {} cp.async {} that it has not waited for",
              found->second.operations.size(), found->second.operations.size() == 1 ? "copy" : "copies")
           .line("by", name_thread(thread))
           .line("oldest", "{} at {}, {}", operation.what, operation.where.text(),
                 operation.group > committed ? "not committed to a group"
                                             : fmt::format("group {} of {}", operation.group, committed))
           .rule("a copy is complete only after cp.async.wait_group or wait_all; without them, its "
                 "destination may already belong to the next CTA",
                 kCpAsyncSection)
           .str());
}

std::string CpAsyncEngine::describe() const {
  return under_way_.empty() ? std::string()
                            : fmt::format("{} cp.async copies are in flight", under_way_.size());
}

const void* CpAsyncEngine::source_of(const Cta& cta, std::uintptr_t shared) const {
  const std::uintptr_t offset = shared - cta.dynamic_window.begin;
  if (offset >= cta.dynamic_window.bytes || sources_.empty() || sources_[cta.index_in_gang].empty())
    return nullptr;
  return sources_[cta.index_in_gang][offset / 16];
}

bool CpAsyncEngine::has_written(const Cta& cta, std::uintptr_t shared) const {
  return source_of(cta, shared) != nullptr;
}

const void* CpAsyncEngine::last_source(const Cta& cta, std::uintptr_t shared) const {
  const void* source = source_of(cta, shared);
  return source == &kZeros ? nullptr : source;
}

void CpAsyncEngine::fail_touched(std::uint32_t id, const std::string& bytes, Access access, Where where) {
  const Operation& operation = operations_[id - 1];
  const Thread& thread = running_thread();
  const Stream& stream = streams_[operation.thread];
  const bool read = access == Access::kRead;
  Report report(read ? "a thread reads bytes that a cp.async is still writing"
                     : "a thread writes to bytes that a cp.async is still writing");
  report.line("bytes", bytes);
  report.line("copy", "{} at {} by {}", operation.what, operation.where.text(),
              name_thread(*operation.thread));
  if (operation.group > stream.committed) {
    report.line("group", "not committed yet; the thread has committed {} groups and waited for {}",
                stream.committed, stream.finished);
  } else {
    report.line("group", "{} of {} committed; the thread has waited for groups up to {}", operation.group,
                stream.committed, stream.finished);
  }
  report.line(read ? "read" : "write", "{} by {}", where.text(), name_thread(thread));
  const std::optional<int> k_tile =
      operation.source_bytes > 0 ? k_tile_of(gang_.grid, operation.global) : std::nullopt;
  if (k_tile) report.line("content", "k-tile {} is being loaded", *k_tile);
  // The copy is older than the latest wait, and its group is not.
  const bool committed_late =
      operation.waits < stream.waits && operation.group > stream.at_wait && stream.waited.line() != 0;
  if (committed_late) {
    report.line("waited",
                "wait_group<{}> at {}: after the copy but before its group was committed; a wait covers only "
                "committed groups",
                stream.left, stream.waited.text());
  }
  if (operation.group > stream.committed) {
    report.missing(committed_late
                       ? fmt::format("cp.async.commit_group between the copy at {} and the wait at {}",
                                     operation.where.text(), stream.waited.text())
                       : std::string("cp.async.commit_group, and a wait_group after it"));
  } else if (committed_late) {
    report.missing(
        "cp.async.commit_group between the copy at {} and the wait at {}: the copy was in no group yet when "
        "its thread waited, because the commit at {} came later",
        operation.where.text(), stream.waited.text(), stream.committed_at.text());
  } else if (operation.thread == &thread && stream.left > 0 && operation.group <= stream.at_wait &&
             std::string_view(operation.what) == "cuda::memcpy_async") {
    report.missing(
        "pipeline::consumer_wait() for the stage of this copy before this {}: the latest one waited for an "
        "older stage, because consumer_wait waits for the oldest stage that has not been released. "
        "consumer_release() comes after the last use of each stage, also in a pipeline of one thread",
        read ? "read" : "write");
  } else if (operation.thread == &thread) {
    report.missing("cp.async.wait_group with at most {} before this {}", stream.committed - operation.group,
                   read ? "read" : "write");
  } else {
    report.missing("cp.async.wait_group with at most {} by {}, and a barrier after it",
                   stream.committed - operation.group, name_thread(*operation.thread));
  }
  if (operation.group <= stream.committed && operation.group <= stream.at_wait && stream.left > 0) {
    report.line("waited", "its latest wait_group<{}> left groups {} to {} in flight{}", stream.left,
                stream.at_wait - std::min(stream.left, stream.at_wait) + 1, stream.at_wait,
                stream.since_wait_before == 0
                    ? fmt::format("; no group was committed since the previous wait, so both waits were for "
                                  "the same groups. An iteration that issues no copy must commit an empty "
                                  "group, or wait with fewer groups left")
                    : std::string());
  }
  report.rule(
      "the bytes belong to the copy until its thread has waited for the group (wait_group N leaves the "
      "latest N groups in flight); other threads need a barrier after that",
      kCpAsyncSection);
  fail(read ? "cp-async-read-before-wait" : "cp-async-overwrite", report.str());
}

}  // namespace emulator
