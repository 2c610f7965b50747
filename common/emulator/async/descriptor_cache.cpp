#include "emulator/async/descriptor_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/async/global_cells.h"
#include "emulator/async/hopper.h"
#include "emulator/report/counters.h"
#include "emulator/report/member_names.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"

namespace emulator {
namespace {

constexpr std::uint32_t kMapBytes = 128;
constexpr std::uint32_t kPiece = 16;  // of one access

constexpr const char* kMapFenceSection = "PTX ISA, \"membar, fence\": fence.proxy.tensormap::generic";
constexpr const char* kGuideSection = "CUDA C++ Programming Guide, \"Usage of a Modified Tensor Map\"";

struct MapRelease {
  std::uint32_t time;
  FenceScope scope;
  Where where;
};
/// By one thread, of one map. Of each thread the latest.
struct MapAcquire {
  Stamp stamp;
  FenceScope scope;
  Where where;
  std::vector<Stamp> covered;  // changes whose release it comes behind
};
/// A copy that reads the map. Whoever knows `completed` knows that it has read it.
struct MapUse {
  Stamp completed;
  Where where;
};
struct CachedMap {
  std::vector<MapAcquire> acquires;  // in this launch
  std::vector<MapUse> uses;          // in this launch; of each agent the latest
  // What the copy engine has read last.
  TensorMapBits cached{};
  std::uint64_t buffer = 0;  // serial; 0: nothing is cached
  std::uint64_t launch = 0;
  Where used;
};
/// A tensormap.replace, or the copy that a map in global memory was made with.
struct MapHistory {
  struct Replaced {
    MapField field;
    unsigned ordinal;
    Where where;
  };
  std::vector<Replaced> replaced;  // the latest of each field
  std::string copied_from;         // "maps.copy.b (shared + 0x38480)", or nothing
  std::uint32_t cta = 0;           // key of the copy's
};
/// Of all OS threads. Fences and histories are those of the latest launch.
struct Descriptors {
  std::mutex mutex;
  std::uint64_t launch = 0;
  std::unordered_map<std::uintptr_t, MapHistory> histories;
  std::unordered_map<std::uint64_t, std::vector<MapRelease>> releases;  // by stamp >> 32
  std::unordered_map<std::uintptr_t, CachedMap> maps;
};
Descriptors& descriptors() {
  static Descriptors all;
  return all;
}

/// Locked, with the fences of the running launch.
class Locked {
 public:
  explicit Locked(const Thread& thread) : lock_(descriptors().mutex) {
    const std::uint64_t launch = thread.cta->gang->grid.launch;
    Descriptors& all = descriptors();
    if (all.launch == launch) return;
    all.launch = launch;
    all.releases.clear();
    all.histories.clear();
    for (auto& [address, map] : all.maps) {
      map.acquires.clear();
      map.uses.clear();
    }
  }
  Descriptors* operator->() const { return &descriptors(); }

 private:
  std::lock_guard<std::mutex> lock_;
};

const char* name_of(FenceScope scope) {
  constexpr const char* kNames[] = {"cta", "cluster", "gpu", "sys"};
  return kNames[static_cast<std::size_t>(scope)];
}

bool same_cluster(const Grid& grid, std::uint32_t one, std::uint32_t other) {
  const gemm::ptx::Extent& extent = grid.shape.cluster;
  const uint3 a = grid.cta_id(one - 1);
  const uint3 b = grid.cta_id(other - 1);
  return a.x / extent.x == b.x / extent.x && a.y / extent.y == b.y / extent.y &&
         a.z / extent.z == b.z / extent.z;
}

/// Whether a fence of this scope reaches from one of these CTAs (keys) to the other.
bool reaches(const Grid& grid, FenceScope scope, std::uint32_t one, std::uint32_t other) {
  if (one == other || scope >= FenceScope::kGpu) return true;
  return scope == FenceScope::kCluster && same_cluster(grid, one, other);
}

/// The changes of the map in this launch: stamp and place of each, once.
struct Change {
  Stamp write;
  Where where;
};
std::vector<Change> changes_of(std::uintptr_t address) {
  std::vector<Change> changes;
  if (!find_buffer(address)->device_written.load(std::memory_order_acquire)) return changes;
  for_global_cells(address, kMapBytes, [&](const Cell& cell) {
    if (cell.write == 0 || std::any_of(changes.begin(), changes.end(),
                                       [&](const Change& change) { return change.write == cell.write; }))
      return;
    changes.push_back({cell.write, Where::from_packed(cell.write_where & ~kAtomicBit)});
  });
  return changes;
}

/// The first release of the writer behind its write, or nullptr. With a scope that is too narrow it is only
/// found where there is no other.
const MapRelease* release_behind(const Descriptors& all, const Grid& grid, Stamp write, std::uint32_t user) {
  const auto found = all.releases.find(write >> 32);
  if (found == all.releases.end()) return nullptr;
  const MapRelease* narrow = nullptr;
  for (const MapRelease& release : found->second) {
    if (release.time < stamp_time(write)) continue;
    if (reaches(grid, release.scope, stamp_cta(write), user)) return &release;
    if (narrow == nullptr) narrow = &release;
  }
  return narrow;
}

Stamp stamp_of(const MapRelease& release, Stamp write) {
  return make_stamp(stamp_cta(write), stamp_thread(write), release.time);
}

/// A release by another thread than the writer that `thread` is behind, or nullptr.
const MapRelease* release_by_another(const Descriptors& all, const Thread& thread, Stamp write,
                                     Stamp& stamp) {
  for (const auto& [key, releases] : all.releases) {
    if (key == write >> 32) continue;
    for (const MapRelease& release : releases) {
      stamp = key << 32 | release.time;
      if (knows(thread, stamp)) return &release;
    }
  }
  return nullptr;
}

/// Whether the change is released, and `thread` knows it.
bool released_to(const Descriptors& all, const Thread& thread, Stamp write) {
  const Grid& grid = thread.cta->gang->grid;
  const MapRelease* const release = release_behind(all, grid, write, thread.cta->key);
  if (release == nullptr) {
    Stamp other = 0;
    return !course_rule_on(CourseRule::kProxyFenceByWriter) && knows(thread, write) &&
           release_by_another(all, thread, write, other) != nullptr;
  }
  return reaches(grid, release->scope, stamp_cta(write), thread.cta->key) && knows(thread, write) &&
         knows(thread, stamp_of(*release, write));
}

[[noreturn]] void fail_space(const char* what, const std::string& headline, const void* map, const char* rule,
                             const char* source, Where where) {
  hopper_engine(what, where)
      .fail("tensor-map-space",
            Report(headline)
                .at(where, running_thread())
                .line("map", describe_address(reinterpret_cast<std::uintptr_t>(map), kMapBytes))
                .rule(rule, source));
  std::abort();
}

/// Which of so many copies of one map in memory this is, in the order of their addresses.
struct CopyNumber {
  std::size_t number = 0;
  std::size_t copies = 0;  // 0: it is no copy
};
CopyNumber number_of(const Descriptors& all, const void* map) {
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  const auto found = all.histories.find(address);
  CopyNumber number;
  if (found == all.histories.end() || found->second.copied_from.empty()) return number;
  for (const auto& [other, history] : all.histories) {
    if (history.copied_from != found->second.copied_from || history.cta != found->second.cta) continue;
    ++number.copies;
    number.number += other < address ? 1 : 0;
  }
  return number;
}

/// "workspace + 128, copied from maps.copy.b (shared + 0x38480), number 0 of its 2 copies: B + 0, extents 552
/// x 680, boxes of 64 x 256".
std::string map_text(const Descriptors& all, const void* map) {
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  std::string text = name_address(address);
  const auto found = all.histories.find(address);
  if (found != all.histories.end() && !found->second.copied_from.empty()) {
    const CopyNumber copy = number_of(all, map);
    text += fmt::format(", copied from {}", found->second.copied_from);
    if (copy.copies > 1) text += fmt::format(", number {} of its {} copies", copy.number, copy.copies);
  }
  TensorMapBits bits;
  gemm::ptx::TensorMapSpec spec;
  std::memcpy(&bits, map, kMapBytes);
  if (!decode_tensor_map(bits, spec)) return text;
  const auto list = [&](const auto& sizes) {
    std::string sizes_text;
    for (std::size_t i = 0; i < static_cast<std::size_t>(spec.rank); ++i)
      sizes_text += fmt::format("{}{}", i == 0 ? "" : " x ", sizes[i]);
    return sizes_text;
  };
  return text + fmt::format(": a map of {}, extents {}, boxes of {}",
                            name_address(reinterpret_cast<std::uintptr_t>(spec.base)), list(spec.extent),
                            list(spec.box));
}

/// The warp that changes the map has waited for mbarriers of an array, one for each copy of it: whether it
/// has for this one; or "".
std::string missing_wait_for_slot(const Gang& gang, const Thread& changes, const CopyNumber& copy) {
  if (!gang.hopper || copy.copies < 2) return {};
  const Cta& cta = *changes.cta;
  const std::string index = fmt::format("[{}]", copy.number);
  const auto array_of = [](const std::string& name) { return name.substr(0, name.rfind('[')); };
  const std::size_t first = std::size_t{changes.index} / kWarpSize * kWarpSize;
  for (const auto& slot : gang.hopper->cta(cta).barriers) {
    const std::string name = member_name(cta, slot->offset);
    if (!slot->live || slot->loaded_phases > 0 || !name.ends_with(index)) continue;
    std::size_t members = 0;
    for (const auto& other : gang.hopper->cta(cta).barriers)
      members += other->live && array_of(member_name(cta, other->offset)) == array_of(name) ? 1 : 0;
    if (members != copy.copies) continue;
    const LastWait* latest = nullptr;  // of the warp at this one
    bool waits_there = false;          // at any of the array
    for (std::size_t i = first; i < std::min(first + kWarpSize, cta.threads.size()); ++i) {
      for (const LastWait& wait : gang.hopper->thread(cta.threads[i]).waits) {
        if (wait.barrier->cta != &cta || array_of(member_name(cta, wait.barrier->offset)) != array_of(name))
          continue;
        waits_there = true;
        if (wait.barrier == slot.get()) latest = &wait;
      }
    }
    if (!waits_there) continue;
    const std::uint64_t phase = latest == nullptr ? slot->first_phase : latest->phase;
    return fmt::format(
        "a wait of warp {} for phase {} (parity {}) of {} before this change: copy {} of the map is free "
        "when its users have arrived there. {}",
        changes.warp(), phase, phase & 1, name_mbarrier(*slot), copy.number,
        latest == nullptr
            ? std::string("It has not waited there yet")
            : fmt::format("Its latest wait there, at {}, {}: each wait must precede the change that it "
                          "protects, not follow it",
                          latest->where.text(),
                          latest->phase == slot->first_phase
                              ? std::string("passed at once, for the first change")
                              : fmt::format("was satisfied by phase {}, for the previous change",
                                            latest->phase - 1)));
  }
  return {};
}

/// What would have ended the use of a map, by whom.
std::string missing_end(const Gang& gang, Stamp completed, const Thread& changes, const CopyNumber& copy) {
  if (is_agent(completed) && gang.hopper) {
    for (const auto& cta : gang.ctas) {
      if (cta->key != (stamp_cta(completed) & (kAgentKey - 1))) continue;
      const Agent agent = gang.hopper->cta(*cta).agents[stamp_thread(completed)];
      if (agent.kind != AgentKind::kStoreReads && agent.kind != AgentKind::kStoreWrites) break;
      return fmt::format(
          "cp.async.bulk.wait_group.read<0> by {}, which issued the store, after the store and before the "
          "arrival (or barrier) that lets {} change the map",
          name_thread(gang.grid, make_stamp(cta->key, agent.object, 1)), name_thread(changes));
    }
  }
  if (std::string wait = missing_wait_for_slot(gang, changes, copy); !wait.empty()) return wait;
  return "a wait for the copy (for a load, at its mbarrier; for a bulk store, "
         "cp.async.bulk.wait_group.read), and a barrier between the thread that waits and the thread that "
         "changes the map";
}

/// No copy that reads the map may be under way where the running thread changes it.
void check_unused(const char* what, const void* map, Where where) {
  const Thread& thread = running_thread();
  MapUse under_way{};
  std::string name;
  CopyNumber copy;
  {
    const Locked all(thread);
    const auto found = all->maps.find(reinterpret_cast<std::uintptr_t>(map));
    if (found == all->maps.end()) return;
    for (const MapUse& use : found->second.uses) {
      if (!knows(thread, use.completed)) under_way = use;
    }
    if (under_way.completed != 0) {
      name = map_text(*all.operator->(), map);
      copy = number_of(*all.operator->(), map);
    }
  }
  if (under_way.completed == 0) return;
  hopper_engine(what, where)
      .fail("tensormap-in-use",
            Report("a tensor map is changed in memory while a copy that uses it may still be in flight")
                .line("map", name)
                .line("use", "{}, {}", under_way.where.text(),
                      name_agent(*thread.cta->gang, under_way.completed))
                .line("change", "{} at {} by {}", what, where.text(), name_thread(thread))
                .missing(missing_end(*thread.cta->gang, under_way.completed, thread, copy))
                .rule("a copy reads its tensor map while it is in flight, so if the map changes before the "
                      "copy is complete, the copy may use either version",
                      "PTX ISA, \"Completion Mechanisms for Asynchronous Copy Operations\"; "
                      "\"cp.async.bulk.wait_group\""));
  std::abort();
}

/// A map is 1024 bits, and an address is a multiple of the access size.
void check_map_alignment(const char* what, const void* map, Where where) {
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  if (address % kMapBytes == 0) return;
  hopper_engine(what, where)
      .fail("tensor-map-misaligned",
            Report("{} accesses a tensor map at a misaligned address", what)
                .at(where, running_thread())
                .line("address", "{:#x}: {} bytes off a multiple of 128", address, address % kMapBytes)
                .rule("a tensor map is accessed as 1024 bits, and an address must be a multiple of the "
                      "access size",
                      "PTX ISA, \"tensormap.replace\"; \"Addresses as Operands\""));
}

void check_pieces(void* map, bool shared, Access access, Where where) {
  for (std::uint32_t at = 0; at < kMapBytes; at += kPiece) {
    const void* const piece = static_cast<const unsigned char*>(map) + at;
    shared ? check_shared(piece, kPiece, access, where) : check_global(piece, kPiece, access, where);
  }
}

void require_global(const char* what, const void* map, Where where) {
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  const Buffer* const buffer = find_buffer(address);
  if (buffer != nullptr && address >= buffer->begin && address - buffer->begin + kMapBytes <= buffer->bytes)
    return;
  fail_space(what, fmt::format("{} uses an address that is not in global memory", what), map,
             "the 128 bytes must be in global memory", kMapFenceSection, where);
}

/// What tensormap.replace makes of the map, or the sentence that forbids it.
std::string apply(gemm::ptx::TensorMapSpec& spec, const MapChange& change) {
  using gemm::ptx::TensorElement;
  constexpr std::size_t kRank = gemm::ptx::kMaxTensorRank;
  const auto dimension = static_cast<std::size_t>(change.ordinal);
  switch (change.field) {
    case MapField::kGlobalAddress:
      spec.base = reinterpret_cast<const void*>(change.value);
      return {};
    case MapField::kRank:
      if (change.value >= kRank) return "the new value must be the rank minus 1, from 0 to 4";
      spec.rank = static_cast<int>(change.value) + 1;
      return {};
    case MapField::kBoxDim:
      if (dimension >= kRank) return "a tensor has at most 5 dimensions, numbered 0 to 4";
      spec.box[dimension] = static_cast<std::uint32_t>(change.value);
      return {};
    case MapField::kGlobalDim:
      if (dimension >= kRank) return "a tensor has at most 5 dimensions, numbered 0 to 4";
      spec.extent[dimension] = change.value;
      return {};
    case MapField::kGlobalStride:
      if (dimension + 1 >= kRank)
        return "a tensor has at most 4 strides, numbered 0 to 3, and stride 0 is that of dimension 1";
      spec.stride_bytes[dimension + 1] = change.value;
      return {};
    case MapField::kElementStride:
      return change.value == 1 ? "" : "the emulator has tensor maps only with an element stride of 1";
    case MapField::kElementType: {
      constexpr TensorElement kTypes[] = {
          TensorElement::kUint8,   TensorElement::kFloat16, TensorElement::kUint32,  TensorElement::kUint32,
          TensorElement::kUint32,  TensorElement::kUint32,  TensorElement::kFloat16, TensorElement::kFloat32,
          TensorElement::kFloat32, TensorElement::kFloat32, TensorElement::kBf16,    TensorElement::kFloat32,
          TensorElement::kFloat32};
      const bool is_wide = change.value == 4 || change.value == 5 || change.value == 9;
      if (is_wide || change.value >= std::size(kTypes))
        return "the emulator has tensor maps with 1, 2 and 4 bytes per element";
      spec.element = kTypes[change.value];
      return {};
    }
    case MapField::kInterleave:
      if (change.value > 2)
        return "an interleave layout must be 0, 1 or 2: none, slices of 16 bytes, slices of 32 bytes";
      spec.interleave = static_cast<gemm::ptx::Interleave>(change.value);
      return {};
    case MapField::kSwizzle: {
      constexpr gemm::ptx::Swizzle kSwizzles[] = {gemm::ptx::Swizzle::kNone, gemm::ptx::Swizzle::k32B,
                                                  gemm::ptx::Swizzle::k64B, gemm::ptx::Swizzle::k128B};
      if (change.value >= std::size(kSwizzles)) return "sm_90a has the swizzle modes 0 to 3";
      spec.swizzle = kSwizzles[change.value];
      return {};
    }
    case MapField::kFill:
      return change.value == 0 ? "" : "the emulator can fill elements outside a tensor only with zeros";
  }
  return {};
}

void note_release(FenceScope scope, Where where) {
  constexpr std::size_t kKept = 256;
  Thread& thread = running_thread();
  {
    const Locked all(thread);
    std::vector<MapRelease>& releases = all->releases[thread.stamp() >> 32];
    if (releases.size() == kKept) releases.erase(releases.begin(), releases.begin() + kKept / 2);
    releases.push_back({thread.time, scope, where});
  }
  thread.advance();
}

/// The operands of one lane.
struct CopyOperands {
  FenceScope scope;
  void* to;
  const void* from;
  Where where;
};

/// The copy, by the lane that comes last. It is behind what each lane has done before, and each lane is
/// behind it.
void copy_and_release(Rendezvous& meeting) {
  constexpr const char* kWhat = "tensormap_cp_fenceproxy";
  const CopyOperands& copy = *static_cast<CopyOperands*>(meeting.arguments[0]);
  for (void* const other : meeting.arguments) {
    const auto& lane = *static_cast<CopyOperands*>(other);
    if (lane.to == copy.to && lane.from == copy.from) continue;
    hopper_engine(kWhat, copy.where)
        .fail("warp-divergence",
              Report("the lanes of a warp give one tensormap_cp_fenceproxy different addresses")
                  .line("where", copy.where.text())
                  .rule("all lanes of the warp must execute the same instruction",
                        "PTX ISA, \"tensormap.cp_fenceproxy\""));
  }
  Thread& writer = running_thread();
  SyncObject before;
  for (Thread* const lane : meeting.lanes) lane->release_into(before);
  writer.acquire_from(before);
  check_unused(kWhat, copy.to, copy.where);
  check_pieces(copy.to, false, Access::kWrite, copy.where);
  std::memcpy(copy.to, copy.from, kMapBytes);
  {
    const Locked all(writer);
    MapHistory& history = all->histories[reinterpret_cast<std::uintptr_t>(copy.to)];
    history.replaced.clear();
    const auto source = all->histories.find(reinterpret_cast<std::uintptr_t>(copy.from));
    if (source != all->histories.end()) history.replaced = source->second.replaced;
    history.cta = writer.cta->key;
    if (const auto offset = shared_offset(*writer.cta, copy.from, copy.where)) {
      history.copied_from = name_shared_offset(*writer.cta, *offset);
      // The map itself, not its first word.
      constexpr std::string_view kFirstWord = ".words[0]";
      if (const std::size_t word = history.copied_from.find(kFirstWord); word != std::string::npos)
        history.copied_from.erase(word, kFirstWord.size());
    }
  }
  const Stamp written = writer.stamp();
  note_release(copy.scope, copy.where);
  for (Thread* const lane : meeting.lanes) {
    if (lane != &writer) lane->clock.add(written);
  }
}

/// What is said of a change that the copy engine may not have seen.
Report begin_report(const std::string& headline, const char* what, const void* map, Where where) {
  Report report(headline);
  report
      .line("map", map_text(descriptors(), map))  // who reports holds the lock
      .line("use", "{} at {} by {}", what, where.text(), name_thread(running_thread()));
  return report;
}

[[noreturn]] void fail_release(const Descriptors& all, const char* what, const void* map,
                               const Change& change, Where where) {
  const Thread& thread = running_thread();
  const std::string writer = is_agent(change.write) ? name_agent(*thread.cta->gang, change.write)
                                                    : name_thread(thread.cta->gang->grid, change.write);
  Report report = begin_report(
      "a tensor map was changed in memory, but no release fence makes the change visible to the copy engine, "
      "which may use the old map",
      what, map, where);
  report.line("changed", "{} by {}", change.where.text(), writer)
      .missing(
          "fence.proxy.tensormap::generic.release by {} after its change (or tensormap.cp_fenceproxy "
          "instead)",
          writer)
      .rule(
          "a changed tensor map must be released in the tensormap proxy by the thread that changed it, and "
          "acquired in that proxy before its use",
          kMapFenceSection);
  Stamp other = 0;
  if (const MapRelease* const release = release_by_another(all, thread, change.write, other)) {
    report.line("but", "{} has executed one at {}, but the PTX ISA does not say whether that is enough",
                name_thread(thread.cta->gang->grid, other), release->where.text());
    report.course_rule(CourseRule::kProxyFenceByWriter);
  }
  hopper_engine(what, where).fail("tensormap-release", report);
  std::abort();
}

[[noreturn]] void fail_scope(const char* what, const void* map, const Change& change, const char* which,
                             FenceScope scope, Where fence, Where where) {
  const Thread& thread = running_thread();
  Report report = begin_report(
      fmt::format(
          "a tensor map was changed by another CTA, and the scope of the {} fence does not include both CTAs",
          which),
      what, map, where);
  report.line("changed", "{} by {}", change.where.text(), name_thread(thread.cta->gang->grid, change.write))
      .line("fence", "{}: .{}.{}", fence.text(), which, name_of(scope))
      .missing("a scope that includes both CTAs: .{}.gpu", which)
      .rule("each fence's scope must include the thread that executes the other fence", kMapFenceSection);
  hopper_engine(what, where).fail("tensormap-scope", report);
  std::abort();
}

/// No acquire fence of this CTA makes the change known to the copy engine: says what there is.
[[noreturn]] void fail_acquire(const CachedMap& state, const char* what, const void* map,
                               const Change& change, const MapRelease* release, Where where) {
  const Thread& thread = running_thread();
  const Grid& grid = thread.cta->gang->grid;
  Report report = begin_report(
      "a tensor map was changed in memory, but no acquire fence of this CTA comes between the change and its "
      "use, so the copy engine may use the old map",
      what, map, where);
  report.line("changed", "{} by {}", change.where.text(), name_thread(grid, change.write));
  if (release != nullptr) report.line("release", release->where.text());
  const MapAcquire* own = nullptr;
  const MapAcquire* other = nullptr;
  for (const MapAcquire& acquire : state.acquires) {
    (stamp_cta(acquire.stamp) == thread.cta->key ? own : other) = &acquire;
  }
  const std::string fence = fmt::format(
      "fence.proxy.tensormap::generic.acquire of this map by a thread of CTA {}", text(thread.cta->id));
  if (own != nullptr &&
      std::find(own->covered.begin(), own->covered.end(), change.write) != own->covered.end()) {
    report.line("acquire", "{} by {}", own->where.text(), name_thread(grid, own->stamp))
        .missing("a barrier between the acquire at {} and {}", own->where.text(), where.text());
  } else if (own != nullptr) {
    report
        .line("acquire", "{} by {}, which does not follow the release", own->where.text(),
              name_thread(grid, own->stamp))
        .missing(fence + ", after the release");
  } else {
    if (other != nullptr) {
      report.line("acquire", "{} by {}, which counts only for threads in its own CTA", other->where.text(),
                  name_thread(grid, other->stamp));
    }
    report.missing(fence + ", after the change and before its use");
  }
  report.rule(
      "the threads of a CTA may use a changed tensor map only after a thread of the same CTA has acquired it "
      "in the tensormap proxy",
      kGuideSection);
  hopper_engine(what, where).fail("tensormap-acquire", report);
  std::abort();
}

/// A map that this launch has not changed. The start of a kernel acquires nothing in the tensormap proxy.
void check_unchanged(const CachedMap& state, std::uint64_t buffer, const char* what, const TensorMapBits& map,
                     Where where) {
  const Thread& thread = running_thread();
  const bool acquired =
      std::any_of(state.acquires.begin(), state.acquires.end(), [&](const MapAcquire& acquire) {
        return stamp_cta(acquire.stamp) == thread.cta->key && knows(thread, acquire.stamp);
      });
  if (acquired) return;
  const bool cached = state.buffer == buffer && state.launch != thread.cta->gang->grid.launch;
  const std::string missing = fmt::format(
      "fence.proxy.tensormap::generic.acquire of this map by a thread of CTA {}, before its use (scope sys "
      "where the host wrote the map)",
      text(thread.cta->id));
  if (cached && std::memcmp(&state.cached, &map, kMapBytes) != 0) {
    Report report = begin_report(
        "a tensor map was changed since an earlier launch used it, and this launch has not acquired it, so "
        "the copy engine may use the old map",
        what, &map, where);
    report.line("before", "used at {} in its earlier state", state.used.text())
        .missing(missing)
        .rule("the start of a kernel does not acquire in the tensormap proxy from the generic proxy",
              "PTX ISA, \"Memory Consistency Model\": \"Synchronizes\"");
    hopper_engine(what, where).fail("tensormap-stale", report);
  }
  if (!course_rule_on(CourseRule::kTensorMapAcquire)) return;
  Report report = begin_report(
      "a tensor map in global memory is used without an acquire in the tensormap proxy", what, &map, where);
  report.missing(missing)
      .rule(
          "the start of a kernel does not acquire in the tensormap proxy from the generic proxy, so a map in "
          "global memory must be acquired \"when needed\"",
          "PTX ISA, \"Memory Consistency Model\": \"Synchronizes\"")
      .course_rule(CourseRule::kTensorMapAcquire);
  hopper_engine(what, where).fail("tensormap-acquire", report);
}

}  // namespace

void tensormap_replace(void* map, const MapChange& change, Where where) {
  const Thread& thread = this_thread(change.what, where);
  if (context.counters) count_instruction(change.what, where, thread.lane() == 0, 1);
  check_map_alignment(change.what, map, where);
  check_pieces(map, change.shared, Access::kRead, where);
  gemm::ptx::TensorMapSpec spec;
  TensorMapBits bits;
  std::memcpy(&bits, map, kMapBytes);
  const std::string broken =
      decode_tensor_map(bits, spec)
          ? apply(spec, change)
          : std::string("the 128 bytes must be a tensor map before one of its fields is replaced");
  if (!broken.empty()) {
    hopper_engine(change.what, where)
        .fail("tensor-map-invalid", Report("{} sets the value {:#x}", change.what, change.value)
                                        .at(where, thread)
                                        .line("ordinal", "{}", change.ordinal)
                                        .rule(broken, "PTX ISA, \"tensormap.replace\""));
  }
  if (!change.shared) check_unused(change.what, map, where);
  check_pieces(map, change.shared, Access::kWrite, where);
  bits = encode_tensor_map(spec);
  std::memcpy(map, &bits, kMapBytes);
  const Locked all(thread);
  auto& replaced = all->histories[reinterpret_cast<std::uintptr_t>(map)].replaced;
  std::erase_if(replaced, [&](const MapHistory::Replaced& old) {
    return old.field == change.field && old.ordinal == change.ordinal;
  });
  replaced.push_back({change.field, change.ordinal, where});
}

std::string describe_replaced(const TensorMapBits& map, MapField field, unsigned ordinal) {
  const Locked all(running_thread());
  const auto found = all->histories.find(reinterpret_cast<std::uintptr_t>(&map));
  if (found == all->histories.end()) return {};
  for (const MapHistory::Replaced& one : found->second.replaced) {
    if (one.field == field && one.ordinal == ordinal)
      return fmt::format("the tensormap.replace at {}{}", one.where.text(),
                         found->second.copied_from.empty()
                             ? std::string()
                             : fmt::format(" (in {})", found->second.copied_from));
  }
  return {};
}

void tensormap_cp_fenceproxy(FenceScope scope, void* to, const void* from, Where where) {
  constexpr const char* kWhat = "tensormap_cp_fenceproxy";
  require_convergence(kWhat, where);
  this_thread(kWhat, where);
  check_map_alignment(kWhat, to, where);
  check_map_alignment(kWhat, from, where);
  require_global(kWhat, to, where);
  // Nothing says that .sync orders memory: each lane reads the map, and is behind what has changed it.
  check_pieces(const_cast<void*>(from), true, Access::kRead, where);
  CopyOperands operands{scope, to, from, where};
  warp_collective(kWhat, 0xffffffffu, &operands, copy_and_release, true, false, where);
}

void fence_proxy_tensormap_release(FenceScope scope, Where where) {
  constexpr const char* kWhat = "fence_proxy_tensormap_release";
  const Thread& thread = this_thread(kWhat, where);
  if (context.counters) count_instruction(kWhat, where, thread.lane() == 0, 1);
  note_release(scope, where);
}

void fence_proxy_tensormap_acquire(FenceScope scope, const void* map, Where where) {
  constexpr const char* kWhat = "fence_proxy_tensormap_acquire";
  Thread& thread = this_thread(kWhat, where);
  if (context.counters) count_instruction(kWhat, where, thread.lane() == 0, 1);
  require_global(kWhat, map, where);
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  const std::vector<Change> changes = changes_of(address);
  {
    const Locked all(thread);
    MapAcquire acquire{thread.stamp(), scope, where, {}};
    for (const Change& change : changes) {
      if (reaches(thread.cta->gang->grid, scope, stamp_cta(change.write), thread.cta->key) &&
          released_to(*all.operator->(), thread, change.write))
        acquire.covered.push_back(change.write);
    }
    std::vector<MapAcquire>& acquires = all->maps[address].acquires;
    std::erase_if(acquires, [&](const MapAcquire& old) { return old.stamp >> 32 == acquire.stamp >> 32; });
    acquires.push_back(std::move(acquire));
  }
  thread.advance();
}

void note_map_use(const TensorMapBits& map, Stamp completed, Where where) {
  const auto address = reinterpret_cast<std::uintptr_t>(&map);
  if (find_buffer(address) == nullptr) return;
  // It is the copy that reads the map, not the thread that issues it.
  for_global_cells(address, kMapBytes, [&](Cell& cell) {
    if (cell.readers > 0 && cell.first.stamp == context.now) cell.first.stamp = completed;
    for (unsigned i = 0; i + 1 < cell.readers; ++i) {
      if (cell.more[i].stamp == context.now) cell.more[i].stamp = completed;
    }
  });
  const Locked all(running_thread());
  std::vector<MapUse>& uses = all->maps[address].uses;
  // Knowing an agent's later time implies the earlier ones.
  std::erase_if(uses, [&](const MapUse& old) { return old.completed >> 32 == completed >> 32; });
  uses.push_back({completed, where});
}

void check_descriptor(const char* what, const TensorMapBits& map, Where where) {
  const Thread& thread = running_thread();
  const auto address = reinterpret_cast<std::uintptr_t>(&map);
  const Buffer* const buffer = find_buffer(address);
  if (buffer == nullptr) {
    if (shared_offset(*thread.cta, &map, where)) {
      fail_space(what, fmt::format("{} uses a tensor map in shared memory", what), &map,
                 "the map must be a const __grid_constant__ parameter, or be in constant or global memory",
                 "PTX ISA, \"cp.async.bulk.tensor\"", where);
    }
    return;
  }
  check_pieces(const_cast<TensorMapBits*>(&map), false, Access::kRead, where);
  const std::vector<Change> changes = changes_of(address);
  const Locked all(thread);
  const Grid& grid = thread.cta->gang->grid;
  CachedMap& state = all->maps[address];
  for (const Change& change : changes) {
    const bool seen =
        std::any_of(state.acquires.begin(), state.acquires.end(), [&](const MapAcquire& acquire) {
          return stamp_cta(acquire.stamp) == thread.cta->key && knows(thread, acquire.stamp) &&
                 std::find(acquire.covered.begin(), acquire.covered.end(), change.write) !=
                     acquire.covered.end();
        });
    if (seen) continue;
    const MapRelease* const release = release_behind(*all.operator->(), grid, change.write, thread.cta->key);
    Stamp other = 0;
    if (release == nullptr && (course_rule_on(CourseRule::kProxyFenceByWriter) ||
                               release_by_another(*all.operator->(), thread, change.write, other) == nullptr))
      fail_release(*all.operator->(), what, &map, change, where);
    if (release != nullptr && !reaches(grid, release->scope, stamp_cta(change.write), thread.cta->key))
      fail_scope(what, &map, change, "release", release->scope, release->where, where);
    for (const MapAcquire& acquire : state.acquires) {
      if (stamp_cta(acquire.stamp) == thread.cta->key &&
          !reaches(grid, acquire.scope, stamp_cta(change.write), thread.cta->key))
        fail_scope(what, &map, change, "acquire", acquire.scope, acquire.where, where);
    }
    fail_acquire(state, what, &map, change, release, where);
  }
  // Of the program's variables nobody can tell which are __constant__, which need no fence.
  if (changes.empty() && buffer->serial != 0) check_unchanged(state, buffer->serial, what, map, where);
  state.cached = map;
  state.buffer = buffer->serial;
  state.launch = grid.launch;
  state.used = where;
}

}  // namespace emulator
