#include "emulator/async/launch_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "emulator/async/hopper.h"
#include "emulator/report/counters.h"
#include "emulator/report/event_log.h"
#include "emulator/report/report.h"
#include "emulator/timeline/timeline.h"

namespace emulator {
namespace {

constexpr const char* kTrySection = "PTX ISA, \"clusterlaunchcontrol.try_cancel\"";
constexpr const char* kQuerySection = "PTX ISA, \"clusterlaunchcontrol.query_cancel\"";
constexpr std::uint32_t kAnswerBytes = 16;

/// The emulator's own format of what is opaque to the program.
struct OpaqueAnswer {
  static constexpr std::uint32_t kMark = 0xc1c00000u;
  std::uint32_t mark;    // kMark, + 1 where a cluster was cancelled
  std::uint32_t serial;  // of the request
  std::uint32_t x;
  std::uint32_t check;  // of the three
  std::uint32_t sum() const { return (mark ^ serial * 0x9e3779b1u ^ x * 0x85ebca77u) | 1u; }
};
static_assert(sizeof(OpaqueAnswer) == kAnswerBytes);

}  // namespace

LaunchControl& launch_control(const char* what, Where where) {
  HopperEngine& engine = hopper_engine(what, where);
  if (!engine.launch_control) engine.launch_control = std::make_unique<LaunchControl>(engine);
  return *engine.launch_control;
}

void LaunchControl::check_not_refused(const char* what, const Thread& thread, Where where) {
  for (const auto& request : requests_) {
    if (!request->decided || request->canceled) continue;
    for (const CancelRequest::Answer& answer : request->answers) {
      if (answer.cta != thread.cta) continue;
      const auto seen = std::find_if(thread.cta->threads.begin(), thread.cta->threads.end(),
                                     [&](const Thread& other) { return knows(other, answer.arrives); });
      if (seen == thread.cta->threads.end()) continue;
      Report report("a CTA that has seen an earlier request fail executes {}", what);
      report.at(where, thread);
      report.line("failed", "the request at {} by {}", request->where.text(),
                  name_thread(engine_.gang.grid, request->issuer));
      report.line("seen", "by {}, which has waited for it", name_thread(*seen));
      report.missing("an exit from the loop: after a failure, the CTA must not request anything more");
      engine_.fail("launch-control-after-failure",
                   report.rule("after a CTA has observed that a request failed, another request is undefined",
                               kTrySection));
    }
  }
}

void LaunchControl::try_cancel(const char* what, void* response, void* barrier, bool multicast, Where where) {
  Thread& thread = this_thread(what, where);
  if (context.counters) count_instruction(what, where, 1, 1, kAnswerBytes);
  const HopperCta& own = engine_.cta(*thread.cta);
  check_not_refused(what, thread, where);
  const std::optional<std::uint32_t> offset = shared_offset(*thread.cta, response, where);
  if (!offset || *offset % kAnswerBytes != 0 || shared_room(*thread.cta, *offset) < kAnswerBytes) {
    Report report("the response of {} is not 16 bytes in this CTA's shared memory", what);
    report.at(where, thread);
    if (offset) report.line("response", name_shared_offset(*thread.cta, *offset));
    engine_.fail(
        "launch-control-address",
        report.rule("the response must be 16 bytes in the executing CTA's shared memory, at a multiple of 16",
                    kTrySection));
  }
  const std::uint32_t barrier_offset = mbarrier_offset(what, barrier, where);
  auto request = std::make_shared<CancelRequest>();
  request->serial = static_cast<std::uint32_t>(requests_.size());
  request->issuer = thread.stamp();
  request->where = where;
  requests_.push_back(request);
  LoadRecord record;
  record.spec.rank = 1;
  record.spec.element = gemm::ptx::TensorElement::kUint32;
  record.spec.extent[0] = kAnswerBytes / 4;
  record.spec.box[0] = kAnswerBytes / 4;
  record.spec.swizzle = gemm::ptx::Swizzle::kNone;
  record.offset = *offset;
  record.bytes = kAnswerBytes;
  record.issuer = thread.stamp();
  record.where = where;
  record.activity = engine_.thread(thread).activity;
  record.request = request;
  std::vector<const Mbarrier*> all_signalled;
  for (std::uint32_t rank = 0; rank < own.cluster.size(); ++rank) {
    Cta& target = *own.cluster[rank];
    if (!multicast && &target != thread.cta) continue;
    if (target.exited == target.thread_count) fail_remote_exit(engine_, target, {thread.stamp(), where});
    // It accesses its mbarrier through the generic proxy.
    Mbarrier& signalled = use_mbarrier(what, target, barrier_offset, false, where);
    all_signalled.push_back(&signalled);
    engine_.copies.start_response(what, thread, target, signalled, record);
  }
  if (timeline_on()) log_load(all_signalled, kAnswerBytes, where);
  ++engine_.gang.progress;
}

void LaunchControl::answer(CancelRequest& request, unsigned char (&bytes)[16]) {
  Gang& gang = engine_.gang;
  if (!request.decided) {
    request.decided = true;
    std::vector<Unlaunched>* const waiting = gang.unlaunched;
    const Completion completion = gang.grid.options.completion;
    // Clusters may be left where a request fails: their SM is there, and the one that asks has no claim.
    constexpr std::uint32_t kOneOfSoManyFails = 8;
    const bool fails = completion == Completion::kRandom && gang.random.below(kOneOfSoManyFails) == 0;
    if (waiting && !waiting->empty() && !fails) {
      const std::size_t chosen = completion == Completion::kEarliest
                                     ? 0
                                     : gang.random.below(static_cast<std::uint32_t>(waiting->size()));
      request.canceled = true;
      request.first = gang.grid.first_cta((*waiting)[chosen].index);
      waiting->erase(waiting->begin() + static_cast<std::ptrdiff_t>(chosen));
      ++gang.grid.started;
      const std::uint32_t issuer = stamp_cta(request.issuer);
      std::size_t ctas = 1;
      for (const auto& cta : gang.ctas) {
        if (cta->key == issuer) ctas = engine_.cta(*cta).cluster.size();
      }
      note_cancelled(request.first, ctas, gang.grid.cta_id(issuer - 1));
    }
  }
  OpaqueAnswer answer{OpaqueAnswer::kMark + (request.canceled ? 1 : 0), request.serial, request.first.x, 0};
  answer.check = answer.sum();
  std::memcpy(bytes, &answer, sizeof answer);
}

CancelRequest& LaunchControl::request_of(const char* what, const void* response, Where where) {
  OpaqueAnswer answer;
  std::memcpy(&answer, response, sizeof answer);
  if (answer.check == answer.sum() && answer.serial < requests_.size() &&
      answer.mark == OpaqueAnswer::kMark + (requests_[answer.serial]->canceled ? 1 : 0))
    return *requests_[answer.serial];
  Report report("{} reads 16 bytes that are not a response", what);
  report.at(where, running_thread());
  report.line("bytes", "{:08x} {:08x} {:08x} {:08x}", answer.mark, answer.serial, answer.x, answer.check);
  add_wait_notes(report, running_thread());
  engine_.fail(
      "launch-control-response",
      report.rule("a query needs the 16 bytes that a try_cancel wrote, loaded after a wait for its mbarrier",
                  kQuerySection));
}

bool LaunchControl::is_canceled(const char* what, const void* response, Where where) {
  this_thread(what, where);
  if (context.counters) count_instruction(what, where, running_thread().lane() == 0, 1);
  return request_of(what, response, where).canceled;
}

uint3 LaunchControl::first_ctaid(const char* what, const void* response, Where where) {
  const Thread& thread = this_thread(what, where);
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  CancelRequest& request = request_of(what, response, where);
  if (!request.canceled) {
    Report report("{} is executed for a request that has failed", what);
    report.at(where, thread);
    report.line("request", "{} by {}", request.where.text(), name_thread(engine_.gang.grid, request.issuer));
    report.missing("a branch on clusterlaunchcontrol_query_cancel_is_canceled before it");
    engine_.fail("launch-control-not-canceled",
                 report.rule("if no cluster was cancelled, get_first_ctaid is undefined", kQuerySection));
  }
  request.decoded = true;
  return request.first;
}

void LaunchControl::thread_exits(const Thread& thread) {
  int running = 0;
  for (const auto& cta : engine_.gang.ctas) running += cta->thread_count - cta->exited;
  if (running > 1) return;  // the thread itself still counts
  for (const auto& request : requests_) {
    if (!request->canceled || request->decoded) continue;
    Report report("a cluster was cancelled, but no thread knows which one");
    report.line("request", "{} by {}", request->where.text(),
                name_thread(engine_.gang.grid, request->issuer));
    report.line("cluster", "its first CTA is {}", text(request->first));
    report.line("last", "{} returns", name_thread(thread));
    report.missing("clusterlaunchcontrol_query_cancel_get_first_ctaid of the response, and its work");
    engine_.fail("launch-control-lost", report.rule("a cancelled cluster never runs, and no other request "
                                                    "gets it, so the CTA that cancelled it must do its work",
                                                    kTrySection));
  }
}

}  // namespace emulator
