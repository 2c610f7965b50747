#include "emulator/async/wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "emulator/async/cp_async.h"
#include "emulator/async/hopper.h"
#include "emulator/async/proxy_fences.h"
#include "emulator/async/tensor_core.h"
#include "emulator/explore/hooks.h"
#include "emulator/explore/left_out.h"
#include "emulator/ledger/ledger.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/causes/passed_phases.h"
#include "emulator/report/counters.h"
#include "emulator/report/event_log.h"
#include "emulator/report/report.h"
#include "emulator/sync/convergence.h"
#include "emulator/sync/lanes.h"
#include "emulator/timeline/timeline.h"

namespace emulator {
namespace {

constexpr const char* kMmaSection = "PTX ISA, \"wgmma.mma_async\"";
constexpr OperandRules kOperandRules{
    .instruction = "wgmma",
    .descriptor = "wgmma-descriptor",
    .uninitialised = "wgmma-operand-uninitialised",
    .race = "wgmma-operand-race",
    .descriptor_section =
        "PTX ISA, \"Asynchronous Warpgroup Level Matrix Shared Memory Layout: Matrix Descriptor Format\"",
    .section = kMmaSection,
    .reader = "every thread of the warpgroup"};
constexpr unsigned kRows = kSlabRows;
constexpr std::size_t kRememberedInstructions = 1024;
constexpr std::uint32_t kUnit = 16;  // bytes that a swizzle moves as one

std::string role(const Warpgroup& warpgroup) {
  const unsigned warp = warpgroup.first_thread / kWarpSize;
  return fmt::format("warpgroup {} (warps {}-{}) of CTA {}", warpgroup.first_thread / kWarpgroupSize, warp,
                     warp + 3, text(warpgroup.cta->id));
}

/// "m64n256k16", and "m64n256k32 e4m3 * e5m2" where the operands are not bf16.
/// Of a thread, for its accumulators.
unsigned register_count(unsigned n, SlabTypes types) {
  return types.f16_sums ? n / 4 : n / 2;
}

std::string shape_text(unsigned n, SlabTypes types) {
  std::string text = fmt::format("m64n{}k{}", n, types.depth());
  if (types.f16_sums) text += " f16";
  if (types.a != gemm::Type::kBf16 || types.b != gemm::Type::kBf16)
    text += fmt::format(" {} * {}", gemm::name_of(types.a), gemm::name_of(types.b));
  return text;
}

std::string instruction_text(const WgmmaInstruction& instruction) {
  return fmt::format("wgmma {} at {}", shape_text(instruction.n, instruction.types),
                     instruction.where.text());
}

std::string text_of(const OperandUse& use) {
  const auto& [warpgroup, instruction] =
      *static_cast<const std::pair<const Warpgroup*, const WgmmaInstruction*>*>(use.object);
  return fmt::format("{} by {}", instruction_text(*instruction), role(*warpgroup));
}

}  // namespace

std::string descriptor_text(std::uint64_t bits, const gemm::ptx::MatrixDescriptor& d) {
  return fmt::format("{:#018x}: address {:#x}, leading {}, stride {}, base offset {}, swizzle {}", bits,
                     d.address, d.leading_bytes, d.stride_bytes, d.base_offset,
                     d.swizzle == gemm::ptx::Swizzle::kNone
                         ? std::string("none")
                         : fmt::format("{} bytes", gemm::ptx::span_bytes(d.swizzle)));
}

namespace {

HopperEngine& engine_of(const Warpgroup& warpgroup) {
  return *warpgroup.cta->gang->hopper;
}

Warpgroup& my_warpgroup(const char* what, Where where) {
  Thread& thread = this_thread(what, where);
  HopperEngine& engine = hopper_engine(what, where);
  HopperCta& cta = engine.cta(*thread.cta);
  const std::size_t index = thread.index / kWarpgroupSize;
  if (index < cta.warpgroups.size()) return *cta.warpgroups[index];
  engine.fail(
      "wgmma-warpgroup",
      Report("a thread that is not in a whole warpgroup executes {}", what)
          .at(where, thread)
          .line("CTA", "{} threads", thread.cta->thread_count)
          .rule("a warpgroup is four consecutive warps, and the number of the first is a multiple of 4",
                "PTX ISA, \"Asynchronous Warpgroup Level Matrix Instructions: Warpgroup\""));
}

constexpr std::uint32_t kGroup = 8;         // rows of a core matrix
constexpr std::uint32_t kUnitElements = 8;  // of 16 bits
constexpr std::uint32_t kMaxUnits = kMaxSlabColumns / kUnitElements;

/// Where an operand lies in shared memory: lines of 16-byte units. A line of a K-major operand is a row, its
/// two units are 8 elements of K each; one of an MN-major operand is a k, and a unit is 8 rows.
class OperandPlace {
 public:
  OperandPlace(const gemm::ptx::MatrixDescriptor& descriptor, unsigned rows, bool mn_major,
               unsigned units = kSlabBytes / kUnit)
      : descriptor_(descriptor), mn_major_(mn_major) {
    const bool swizzled = descriptor.swizzle != gemm::ptx::Swizzle::kNone;
    line_bytes_ = swizzled ? static_cast<std::uint32_t>(gemm::ptx::span_bytes(descriptor.swizzle)) : kUnit;
    lines_ = mn_major ? kSlabDepth : rows;
    units_ = mn_major ? rows / kUnitElements : units;
    panel_units_ = !swizzled ? 1 : mn_major ? line_bytes_ / kUnit : units_;
    // Without a swizzle the two offsets of an MN-major operand change places.
    const bool exchanged = mn_major && !swizzled;
    group_bytes_ = exchanged ? descriptor.leading_bytes : descriptor.stride_bytes;
    panel_bytes_ = exchanged ? descriptor.stride_bytes : descriptor.leading_bytes;
    // The pattern is a function of the address; a tile that starts elsewhere in it says so in its base
    // offset.
    shift_ = swizzled ? descriptor.base_offset << 7 : 0;
  }

  std::uint32_t lines() const { return lines_; }
  std::uint32_t units() const { return units_; }
  bool is_mn_major() const { return mn_major_; }
  /// Units lie one behind the other within a panel: the span of the swizzle. The units of a K-major operand
  /// are all in one, if there is a swizzle.
  std::uint32_t panel(std::uint32_t unit) const { return unit / panel_units_; }
  std::uint32_t byte_in_panel(std::uint32_t unit) const { return unit % panel_units_ * kUnit; }
  /// How many bytes of a panel's line the operand reads.
  std::uint32_t used_bytes() const { return std::min(panel_units_, units_) * kUnit; }

  std::uint32_t offset(std::uint32_t line, std::uint32_t unit) const {
    const std::uint32_t address = descriptor_.address + line / kGroup * group_bytes_ +
                                  line % kGroup * line_bytes_ + panel(unit) * panel_bytes_ +
                                  byte_in_panel(unit);
    return gemm::ptx::swizzled(address - shift_, descriptor_.swizzle) + shift_;
  }

 private:
  gemm::ptx::MatrixDescriptor descriptor_;
  bool mn_major_;
  std::uint32_t line_bytes_;
  std::uint32_t lines_;
  std::uint32_t units_;
  std::uint32_t panel_units_;
  std::uint32_t group_bytes_;  // from 8 lines to the next 8
  std::uint32_t panel_bytes_;
  std::uint32_t shift_;
};

}  // namespace

void gather_operand(const Cta& cta, const gemm::ptx::MatrixDescriptor& decoded, unsigned rows, SlabRow* to,
                    unsigned units) {
  const OperandPlace place(decoded, rows, false, units);
  const unsigned char* shared = shared_base(cta, decoded.address);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t unit = 0; unit < units; ++unit) {
      std::memcpy(&to[row][std::size_t{8} * unit], shared + place.offset(row, unit), kUnit);
    }
  }
}

namespace {

/// The same for an MN-major operand.
void gather_transposed(const Cta& cta, const gemm::ptx::MatrixDescriptor& decoded, unsigned rows,
                       SlabRow* to) {
  const OperandPlace place(decoded, rows, true);
  const unsigned char* shared = shared_base(cta, decoded.address);
  for (std::uint32_t k = 0; k < place.lines(); ++k) {
    for (std::uint32_t unit = 0; unit < place.units(); ++unit) {
      std::uint16_t elements[kUnitElements];
      std::memcpy(elements, shared + place.offset(k, unit), kUnit);
      for (std::uint32_t i = 0; i < kUnitElements; ++i) to[unit * kUnitElements + i][k] = elements[i];
    }
  }
}

void gather(const Cta& cta, std::uint64_t bits, unsigned rows, bool mn_major, SlabRow* to) {
  const gemm::ptx::MatrixDescriptor decoded = gemm::ptx::decode(bits);
  if (mn_major) {
    gather_transposed(cta, decoded, rows, to);
  } else {
    gather_operand(cta, decoded, rows, to);
  }
}

}  // namespace

namespace {

/// Collects the writers of the operands: one entry for each, with its latest time.
class WriterSet {
 public:
  explicit WriterSet(std::vector<OperandWriter>& entries) : entries_(entries) {}

  void add(const Cta& cta, const Cell& cell, std::uint32_t offset, char operand) {
    if (last_ == cell.write) return;
    last_ = cell.write;
    OperandWriter* entry = nullptr;
    if (stamp_cta(cell.write) == cta.key) {
      std::uint16_t& slot = own_[stamp_thread(cell.write)];
      if (slot != 0) {
        entry = &entries_[slot - 1u];
      } else {
        slot = static_cast<std::uint16_t>(entries_.size() + 1);
      }
    } else {
      for (OperandWriter& other : entries_) {
        if (other.stamp >> 32 == cell.write >> 32) entry = &other;
      }
    }
    const OperandWriter writer{cell.write, cell.write_where, offset, 0, operand};
    if (!entry) {
      entries_.push_back(writer);
    } else if (stamp_time(cell.write) > stamp_time(entry->stamp)) {
      *entry = writer;
    }
  }

 private:
  std::vector<OperandWriter>& entries_;
  Stamp last_ = 0;
  std::array<std::uint16_t, 1024> own_{};  // thread of the same CTA -> entry + 1
};

class OperandCheck {
 public:
  OperandCheck(const OperandUse& use, char name, std::uint64_t bits,
               const gemm::ptx::MatrixDescriptor& descriptor, unsigned rows, bool mn_major,
               WriterSet& writers)
      : use_(use),
        rules_(*use.rules),
        issuer_(*use.issuer),
        name_(name),
        bits_(bits),
        descriptor_(descriptor),
        place_(descriptor_, rows, mn_major, use.units),
        engine_(*use.cta->gang->hopper),
        loads_(engine_.cta(*use.cta).load_of_line),
        writers_(writers) {}

  /// Reports what forbids reading the operand; otherwise records the issuer as its reader.
  void run(Stamp stamp) {
    check_descriptor();
    const std::uint32_t bytes = static_cast<std::uint32_t>(use_.cta->dynamic_window.bytes);
    // Panel by panel: what one load brought comes in a row.
    const bool by_units = place_.is_mn_major();
    const std::uint32_t outer = by_units ? place_.units() : place_.lines();
    const std::uint32_t inner = by_units ? place_.lines() : place_.units();
    for (std::uint32_t i = 0; i < outer; ++i) {
      for (std::uint32_t j = 0; j < inner; ++j) {
        const std::uint32_t line_of = by_units ? j : i;
        const std::uint32_t unit = by_units ? i : j;
        const std::uint32_t offset = place_.offset(line_of, unit);
        if (offset + kUnit > bytes && !in_variable(offset)) {
          fail(rules_.descriptor,
               report(headline("reads outside shared memory"))
                   .line("bytes", "{}, {}: offset {:#x} of {:#x} bytes", name_, elements_text(line_of, unit),
                         offset, bytes)
                   .rule("the rows that address and stride describe must lie in the CTA's shared memory",
                         rules_.descriptor_section));
        }
        Line& line = shared_line(*use_.cta, offset);
        Cell& cell = line.whole;
        if (line.granule_log2() == Line::kWholeLog2 && cell.pending == 0 && cell.write == seen_write_ &&
            (!seen_async_ || follows_hint(line_of, unit, offset))) [[likely]] {
          add_async_reader(cell, stamp, use_.where, issuer_);
        } else {
          visit(line, line_of, unit, offset, stamp);
        }
        if (ledger_on()) [[unlikely]]
          ledger_engine_reads(issuer_,
                              rules_.instruction == std::string_view("wgmma") ? LedgerReader::kWgmma
                                                                              : LedgerReader::kTensorCores,
                              stamp_time(stamp), *use_.cta, offset);
      }
    }
  }

 private:
  Report report(const std::string& headline) const {
    Report report(headline);
    report.line(rules_.instruction, use_.describe(use_))
        .line("thread", name_thread(running_thread()))
        .line(std::string(1, name_), descriptor_text(bits_, descriptor_));
    return report;
  }
  std::string headline(const char* what) const { return fmt::format("{} {}", rules_.instruction, what); }
  /// "row 3, k 8-15"; of an MN-major operand "rows 8-15, k 3".
  std::string elements_text(std::uint32_t line, std::uint32_t unit) const {
    const std::uint32_t elements = place_.is_mn_major() ? kUnitElements : use_.types.depth() / 2;
    const std::string units = fmt::format("{}-{}", elements * unit, elements * (unit + 1) - 1);
    return place_.is_mn_major() ? fmt::format("rows {}, k {}", units, line)
                                : fmt::format("row {}, k {}", line, units);
  }
  [[noreturn]] void fail(const char* rule, Report& report) const { engine_.fail(rule, report); }
  /// Whether the 16 bytes lie in the __shared__ variable that the operand starts in.
  bool in_variable(std::uint32_t offset) const {
    const StaticShared& variables = use_.cta->gang->static_shared;
    const StaticVariable* variable = variables.at(offset);
    return variable && variable == variables.at(descriptor_.address) &&
           offset - variable->offset + kUnit <= variable->bytes;
  }

  void check_descriptor() const {
    const bool swizzled = descriptor_.swizzle != gemm::ptx::Swizzle::kNone;
    const auto span = static_cast<std::uint32_t>(gemm::ptx::span_bytes(descriptor_.swizzle));
    if (!swizzled && descriptor_.base_offset != 0) {
      fail(rules_.descriptor,
           report("a base offset in a descriptor without a swizzle")
               .rule("the base offset exists only for swizzled layouts", rules_.descriptor_section));
    }
    if (descriptor_.base_offset == 0) {
      note_swizzle_start(rules_.instruction, *use_.cta, descriptor_.address, span, swizzled, use_.where);
    }
    const std::uint32_t in_row = descriptor_.address % span;
    if (swizzled && place_.is_mn_major() && in_row + place_.used_bytes() > span) {
      fail(rules_.descriptor,
           report(
               fmt::format(
                   "{} rows of an MN-major operand do not fit in the rest of the swizzle's span of {} bytes",
                   place_.used_bytes() / kUnit * kUnitElements, span))
               .line("start", "{} bytes into the span of the swizzle", in_row)
               .rule("an MN-major operand must start where a span of the swizzle starts: 16 elements further "
                     "along K are 16 spans further on, not 32 bytes",
                     rules_.descriptor_section));
    }
    if (swizzled && !place_.is_mn_major() && in_row + use_.units * kUnit > span) {
      fail(rules_.descriptor,
           report(fmt::format("16 elements of K do not fit in the rest of a row of {} bytes", span))
               .line("start", "{} bytes into the row", in_row)
               .rule("a step along K must stay inside the row of the swizzle's span; the next panel needs "
                     "its own descriptor",
                     rules_.descriptor_section));
    }
  }

  void visit(Line& line, std::uint32_t line_of, std::uint32_t unit, std::uint32_t offset, Stamp stamp) {
    Cta& cta = *use_.cta;
    const unsigned cells = cells_of(line);
    for (unsigned i = 0; i < cells; ++i) {
      Cell& cell = line.cells()[i];
      if (cell.pending != 0) [[unlikely]] {
        const std::string bytes = fmt::format("{}, {} of operand {}", name_shared_offset(cta, offset),
                                              elements_text(line_of, unit), name_);
        if (cell.pending & kHopperPending) {
          engine_.fail_touched(cell.pending, bytes, Access::kRead, use_.where);
        }
        cta.gang->cp_async->fail_touched(cell.pending, bytes, Access::kRead, use_.where);
      }
      if (cell.write == 0) [[unlikely]] {
        Report text = report(headline("reads shared memory that has never been written"));
        text.line("bytes", "{}, {}", name_shared_offset(cta, offset), elements_text(line_of, unit));
        explain_passed_too_early(text, running_thread());
        add_wait_notes(text, running_thread());
        fail(rules_.uninitialised,
             text.rule(fmt::format("the tile must be complete before {} is issued: wait for its load, or "
                                   "check the descriptor's address and stride",
                                   rules_.instruction),
                       rules_.section));
      }
      writers_.add(cta, cell, offset, name_);
      add_async_reader(cell, stamp, use_.where, issuer_);
    }
    seen_write_ = line.cells()[0].write;
    seen_async_ = engine_.by_async_proxy(seen_write_);
    if (seen_async_) check_layout(line_of, unit, offset);
  }

  /// Whether the unit lies where the one that check_layout saw last in this panel says.
  bool follows_hint(std::uint32_t line, std::uint32_t unit, std::uint32_t offset) const {
    const Hint& hint = hints_[place_.panel(unit)];
    return hint.serial != 0 && loads_[offset / kUnit] == hint.serial &&
           gemm::ptx::swizzled(offset, hint.swizzle) - hint.base ==
               line * hint.pitch + place_.byte_in_panel(unit);
  }

  /// A tile that the copy engine wrote: the descriptor must read it as it was written.
  void check_layout(std::uint32_t line, std::uint32_t unit, std::uint32_t offset) {
    const LoadRecord* load = engine_.copies.record(*use_.cta, offset / kUnit);
    if (!load || load->spec.rank == 1) return;  // bytes without a tensor map may be arranged in any way
    // Without a swizzle, rows of 16 bytes lie one behind the other. A box with longer rows brings bytes that
    // memory already has in this order, such as a piece of scales.
    if (rules_.instruction == std::string_view("tcgen05.cp") && load->row_bytes() > kUnit &&
        load->spec.swizzle == gemm::ptx::Swizzle::kNone && descriptor_.swizzle == gemm::ptx::Swizzle::kNone)
      return;
    if (load->spec.swizzle != descriptor_.swizzle && load->row_bytes() > kUnit) {
      Report text =
          report(headline("reads a tile with a different swizzle from the one with which it was written"));
      text.line("bytes", name_shared_offset(*use_.cta, offset))
          .line("load", "{}: {}, swizzle {}", load->where.text(), describe_load(engine_.gang.grid, *load),
                load->spec.swizzle == gemm::ptx::Swizzle::kNone
                    ? std::string("none")
                    : fmt::format("{} bytes", gemm::ptx::span_bytes(load->spec.swizzle)));
      fail(rules_.descriptor,
           text.rule("the descriptor's swizzle must be the tensor map's", rules_.descriptor_section));
    }
    const std::uint32_t linear = gemm::ptx::swizzled(offset, load->spec.swizzle) - load->offset;
    const std::uint32_t pitch = box_row_pitch(load->spec);
    const auto loaded_line = static_cast<std::int64_t>(linear / pitch) - line;
    // In a panel units follow each other; the leading offset (of an MN-major operand without a swizzle the
    // stride) leads to the next one.
    const std::uint32_t byte = linear % pitch - place_.byte_in_panel(unit);
    const std::uint32_t panel = place_.panel(unit);
    if (byte + place_.used_bytes() <= pitch) {
      hints_[panel] = {load->serial, load->spec.swizzle, pitch,
                       linear + load->offset - line * pitch - place_.byte_in_panel(unit)};
    }
    const auto fail_order = [&](const std::string& expected) {
      Report text = report(
          headline("reads the rows of a tile in a different order from that in which they were written"));
      text.line("bytes", "{}: {}", elements_text(line, unit), name_shared_offset(*use_.cta, offset));
      text.line("there", "row {}, byte {} of the box", linear / pitch, linear % pitch);
      text.line("expected", expected);
      text.line("load", "{}: {}", load->where.text(), describe_load(engine_.gang.grid, *load));
      if (const std::string missing = right_leading(panel); !missing.empty()) text.missing(missing);
      fail(rules_.descriptor,
           text.rule(
               !place_.is_mn_major()
                   ? "the stride leads from 8 rows to the next 8, and the leading offset (without a swizzle) "
                     "from 16 bytes of K to the next; row 0 of a swizzled tile must start the pattern"
               : descriptor_.swizzle != gemm::ptx::Swizzle::kNone
                   ? "in an MN-major operand, the stride leads from 8 elements of K to the next 8, and the "
                     "leading offset from one span of the swizzle to the next along M or N"
                   : "in an MN-major operand without a swizzle, the leading offset leads from 8 elements of "
                     "K to the next 8, and the stride from 8 elements of M or N to the next 8",
               rules_.descriptor_section));
    };
    for (const Layout& layout : layouts_) {
      if (layout.serial != load->serial || layout.panel != panel) continue;
      if (layout.line == loaded_line && layout.byte == byte) return;
      fail_order(
          fmt::format("row {}, byte {}", layout.line + line, layout.byte + place_.byte_in_panel(unit)));
    }
    layouts_.push_back({load->serial, panel, loaded_line, byte});
    if (place_.is_mn_major() && load->spec.rank == 2) check_depth(*load, line, linear / pitch, fail_order);
  }

  /// Of an MN-major operand with a swizzle: how far apart the loads of its first panel and the next one lie,
  /// where the descriptor says something else; or "".
  std::string right_leading(std::uint32_t panel) const {
    if (!place_.is_mn_major() || descriptor_.swizzle == gemm::ptx::Swizzle::kNone || panel == 0) return {};
    const LoadRecord* const first = engine_.copies.record(*use_.cta, place_.offset(0, 0) / kUnit);
    if (first == nullptr || first->spec.rank != 2) return {};
    std::optional<std::uint32_t> apart;
    engine_.copies.visit_loads([&](const LoadRecord& load) {
      if (load.barrier == first->barrier && load.phase == first->phase &&
          load.spec.base == first->spec.base && load.coordinates[1] == first->coordinates[1] &&
          load.coordinates[0] == first->coordinates[0] + static_cast<std::int32_t>(first->spec.box[0]) &&
          load.offset > first->offset)
        apart = load.offset - first->offset;
    });
    if (!apart || *apart == descriptor_.leading_bytes) return {};
    return fmt::format(
        "a leading offset of {} bytes in the descriptor instead of {}: the {} columns of the matrix that "
        "follow the first panel were loaded {} bytes after it",
        *apart, descriptor_.leading_bytes, first->spec.box[0], *apart);
  }

  /// A k of an MN-major operand is one row of the matrix that was loaded, in every panel, and another one for
  /// each k: otherwise some rows of the operand would be multiplied with another k than others.
  template <typename Fail>
  void check_depth(const LoadRecord& load, std::uint32_t k, std::uint32_t row_of_box,
                   const Fail& fail_order) {
    const std::int64_t row = load.coordinates[1] + static_cast<std::int64_t>(row_of_box);
    for (const Depth& other : depths_) {
      if (other.base != load.spec.base) return;  // tiles of several matrices: whoever does that knows why
      if (other.k == k && other.row != row)
        fail_order(fmt::format("row {} of the matrix, where the other panels have k {}", other.row, k));
      if (other.k != k && other.row == row)
        fail_order(fmt::format("a different row from {} of the matrix, which is k {}", other.row, other.k));
    }
    depths_.push_back({load.spec.base, k, row});
  }

  struct Depth {
    const void* base;
    std::uint32_t k;
    std::int64_t row;
  };

  struct Layout {
    std::uint32_t serial;
    std::uint32_t panel;
    std::int64_t line;
    std::uint32_t byte;
  };

  struct Hint {
    std::uint32_t serial = 0;
    gemm::ptx::Swizzle swizzle{};
    std::uint32_t pitch = 0;
    std::uint32_t base = 0;  // where line 0 of the operand would be in the linear box
  };

  const OperandUse& use_;
  const OperandRules& rules_;
  const Thread& issuer_;
  char name_;
  std::uint64_t bits_;
  gemm::ptx::MatrixDescriptor descriptor_;
  OperandPlace place_;
  HopperEngine& engine_;
  const std::vector<std::uint32_t>& loads_;
  WriterSet& writers_;
  std::vector<Layout> layouts_;
  std::vector<Depth> depths_;
  std::array<Hint, kMaxUnits> hints_;  // by panel
  Stamp seen_write_ = ~Stamp{0};       // of the line visited last: its writer is in writers_
  bool seen_async_ = false;            // it was made through the asynchronous proxy
};

Report operand_report(const OperandUse& use, const gemm::ptx::MatrixDescriptor& descriptor,
                      std::uint64_t bits, const OperandWriter& writer, const std::string& headline) {
  Report report(headline);
  report.line(use.rules->instruction, use.describe(use));
  report.line(std::string(1, writer.operand), descriptor_text(bits, descriptor));
  report.line("bytes", name_shared_offset(*use.cta, writer.offset));
  const std::uintptr_t address = use.cta->dynamic_window.begin + writer.offset;
  if (const std::string content = content_text(running_thread(), address, Access::kRead, writer.stamp);
      !content.empty() && !is_agent(writer.stamp))
    report.line("content", content);
  const HopperEngine& engine = *use.cta->gang->hopper;
  report.line("written", "{} by {}", Where::from_packed(writer.where & ~kAtomicBit).text(),
              is_agent(writer.stamp) ? name_agent(engine.gang, writer.stamp)
                                     : name_thread(engine.gang.grid, writer.stamp));
  return report;
}

}  // namespace

void check_operand_order(const OperandUse& use, const OperandWriter& writer, std::uint64_t bits,
                         const gemm::ptx::MatrixDescriptor& descriptor) {
  const Thread& thread = running_thread();
  HopperEngine& engine = *use.cta->gang->hopper;
  const std::string name = use.rules->instruction;
  {
    const bool agent = is_agent(writer.stamp);
    if (!knows(thread, writer.stamp)) {
      const bool relaxed = agent && engine.thread(thread).tensor.covers(writer.stamp);
      Report report = operand_report(
          use, descriptor, bits, writer,
          agent ? name + " reads bytes that a load brought, and one of its threads has not " +
                      (relaxed ? "acquired it" : "waited for it")
                : "nothing orders a write of shared memory and the " + name + " that reads it");
      report.line("thread", "{} is not ordered after that", name_thread(thread));
      const bool of_pair = agent && (stamp_cta(writer.stamp) & (kAgentKey - 1)) != use.cta->key;
      if (of_pair && thread.execution.covers(writer.stamp)) {
        report.missing(
            "acquire at cluster scope in the wait for the load, which writes another CTA's shared memory: "
            "mbarrier_wait_parity_cluster");
        report.rule("a synchronisation between two CTAs needs the scope .cluster",
                    "PTX ISA, \"cp.async.bulk.tensor\", \"mbarrier.try_wait\"");
        engine.fail("load-not-waited", report.course_rule(CourseRule::kPairClusterScope));
      }
      if (agent) {
        const LoadRecord* load = engine.copies.record(*use.cta, writer.offset / kUnit);
        if (load) {
          report.line("load", describe_load(engine.gang.grid, *load));
          if (!relaxed) explain_missing_wait(report, thread, *load->barrier, load->phase);
        }
      }
      if (relaxed)
        report.missing(
            "acquire in the wait for the load: it saw the phase complete, but a relaxed wait orders no later "
            "access");
      if (!agent) {
        report.missing("a barrier between the write at {} and the {}",
                       Where::from_packed(writer.where & ~kAtomicBit).text(), name);
      }
      add_wait_notes(report, thread);
      engine.fail(
          agent ? "load-not-waited" : use.rules->race,
          report.rule(
              agent
                  ? fmt::format(
                        "{} must wait for the mbarrier itself, or meet a thread that has waited at a barrier",
                        use.rules->reader)
                  : "the writers must execute fence.proxy.async, and then a barrier must lead to the reader",
              agent ? "PTX ISA, \"cp.async.bulk.tensor\", \"mbarrier.try_wait\""
                    : "PTX ISA, \"Async proxy\"; \"Memory Consistency Model\""));
    }
    if (engine.by_async_proxy(writer.stamp)) return;
    if (writer.fence != 0 &&
        knows(thread, make_stamp(stamp_cta(writer.stamp), stamp_thread(writer.stamp), writer.fence))) {
      return;
    }
    if (!course_rule_on(CourseRule::kProxyFenceByWriter) && fenced_on_the_way(thread, writer.stamp, true))
      return;
    const CpAsyncEngine* const copies = use.cta->gang->cp_async;
    const bool copied =
        copies != nullptr && copies->has_written(*use.cta, use.cta->dynamic_window.begin + writer.offset);
    Report report = operand_report(use, descriptor, bits, writer,
                                   name + " reads bytes that " + (copied ? "cp.async" : "ordinary stores") +
                                       " wrote, without a proxy fence");
    report.line("fence", writer.fence != 0
                             ? fmt::format("the writer has executed one, but nothing orders it before {}",
                                           name_thread(thread))
                             : std::string("the writer has executed none since") +
                                   (copied ? " cp.async.wait_group said that the copy is complete" : ""));
    report.missing(writer.fence != 0 ? "a barrier after the fence, before the " + name
                   : copied          ? "fence.proxy.async after cp.async.wait_group, before the barrier"
                                     : "fence.proxy.async after the write, before the barrier");
    report.rule(
        "each thread that wrote must execute fence.proxy.async, and only then the barrier that leads to " +
            name,
        "PTX ISA, \"Async proxy\"; \"membar, fence\": fence.proxy.async");
    explain_fence_on_the_way(report, thread, writer.stamp, true);
    engine.fail("proxy-fence", report);
  }
}

void read_operand(const OperandUse& use, char name, std::uint64_t bits,
                  const gemm::ptx::MatrixDescriptor& descriptor, unsigned rows, Stamp stamp,
                  std::vector<OperandWriter>& writers) {
  WriterSet set(writers);
  OperandCheck(use, name, bits, descriptor, rows, false, set).run(stamp);
}

void look_for_fences(const OperandUse& use, std::vector<OperandWriter>& writers) {
  for (OperandWriter& writer : writers)
    writer.fence = is_agent(writer.stamp) ? 0 : use.cta->gang->hopper->fence_after(writer.stamp, true);
}

namespace {

void check_order(const Warpgroup& warpgroup, const WgmmaInstruction& instruction) {
  if (instruction.behind != 0 && instruction.behind < running_thread().base) return;
  const std::pair<const Warpgroup*, const WgmmaInstruction*> object{&warpgroup, &instruction};
  const OperandUse use{&kOperandRules,    warpgroup.cta, &warpgroup.cta->threads[warpgroup.first_thread],
                       instruction.where, &object,       text_of,
                       instruction.types};
  for (const OperandWriter& writer : instruction.writers) {
    const std::uint64_t bits = writer.operand == 'A' ? instruction.a : instruction.b;
    check_operand_order(use, writer, bits, gemm::ptx::decode(bits));
  }
}

/// The first thread executes the instruction: from now on the tensor cores may read the operands.
void start(Warpgroup& warpgroup, WgmmaInstruction& instruction, std::uint64_t number) {
  const Cta& cta = *warpgroup.cta;
  const Stamp stamp = agent_stamp(cta, warpgroup.agent, static_cast<std::uint32_t>(number) + 1);
  HopperEngine& engine = engine_of(warpgroup);
  WriterSet writers(instruction.writers);
  const std::pair<const Warpgroup*, const WgmmaInstruction*> object{&warpgroup, &instruction};
  const OperandUse use{&kOperandRules,    warpgroup.cta, &warpgroup.cta->threads[warpgroup.first_thread],
                       instruction.where, &object,       text_of,
                       instruction.types};
  if (!instruction.a_in_registers) {
    OperandCheck(use, 'A', instruction.a, gemm::ptx::decode(instruction.a), kRows, instruction.transposed.a,
                 writers)
        .run(stamp);
  }
  OperandCheck(use, 'B', instruction.b, gemm::ptx::decode(instruction.b), instruction.n,
               instruction.transposed.b, writers)
      .run(stamp);
  look_for_fences(use, instruction.writers);
  bool simple = true;  // nothing but fenced writes of the same CTA
  for (const OperandWriter& writer : instruction.writers) {
    simple = simple && stamp_cta(writer.stamp) == cta.key && writer.fence != 0;
    instruction.behind = std::max(instruction.behind, writer.fence);
  }
  if (!simple) instruction.behind = 0;
  const std::uint32_t operand = gemm::ptx::decode(instruction.b).address;
  const LoadRecord* load = engine.copies.record(cta, operand / kUnit);
  std::optional<int> k_tile = load ? k_tile_of(engine.gang.grid, *load) : std::nullopt;
  if (!load && engine.gang.cp_async) k_tile = k_tile_held(cta, cta.dynamic_window.begin + operand, 0);
  std::optional<std::uint32_t> a;
  if (!instruction.a_in_registers) a = gemm::ptx::decode(instruction.a).address;
  warpgroup.operands.push_back({operand, k_tile.value_or(-1), a});
  if (warpgroup.operands.size() > kRememberedInstructions) warpgroup.operands.pop_front();
  warpgroup.started = number + 1;
}

float widened(std::uint32_t f16) {
  return gemm::to_float(gemm::fp16{static_cast<std::uint16_t>(f16)});
}

/// Multiplies; the operands are read now.
void execute(Warpgroup& warpgroup, WgmmaInstruction& instruction) {
  const PoisonIgnored ignored;  // infinities and NaNs are the operands' own
  SlabRow a[kRows];
  SlabRow b[kMaxSlabColumns];
  if (instruction.a_in_registers) {
    for (unsigned thread = 0; thread < kWarpgroupSize; ++thread) {
      const unsigned row = thread / 32 * 16 + thread % 32 / 4;
      const unsigned k = thread % 4 * 2;
      for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t pair = instruction.fragments[4 * thread + i];
        a[row + i % 2 * 8][k + i / 2 * 8] = static_cast<std::uint16_t>(pair);
        a[row + i % 2 * 8][k + i / 2 * 8 + 1] = static_cast<std::uint16_t>(pair >> 16);
      }
    }
  } else {
    gather(*warpgroup.cta, instruction.a, kRows, instruction.transposed.a, a);
  }
  gather(*warpgroup.cta, instruction.b, instruction.n, instruction.transposed.b, b);
  multiply_slab(instruction.types, a, b, instruction.n, instruction.accumulate,
                instruction.accumulator->d.data());
  if (instruction.types.f16_sums) {
    for (float& sum : instruction.accumulator->d) sum = widened(f16_bits(sum));
  }
}

/// Visits the thread's elements of D: visit(register, index into Accumulator::d).
template <typename Visit>
void for_fragment(unsigned thread, unsigned n, Visit visit) {
  const unsigned row = thread / 32 * 16 + thread % 32 / 4;
  const unsigned column = thread % 4 * 2;
  for (unsigned j = 0; j < n / 8; ++j) {
    const unsigned at = (8 * j + column) * kRows + row;
    visit(4 * j, at);
    visit(4 * j + 1, at + kRows);
    visit(4 * j + 2, at + 8);
    visit(4 * j + 3, at + kRows + 8);
  }
}

void execute_front(Warpgroup& warpgroup) {
  execute(warpgroup, warpgroup.queue.front());
  warpgroup.queue.pop_front();
  ++warpgroup.done;
  Gang& gang = *warpgroup.cta->gang;
  ++gang.progress;
  std::erase_if(warpgroup.waiting, [&](Thread* thread) {
    if (warpgroup.threads[thread->index - warpgroup.first_thread].target > warpgroup.done) return false;
    gang.make_runnable(*thread);
    return true;
  });
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

const std::uint32_t* as_words(const void* registers) {
  return static_cast<const std::uint32_t*>(registers);
}

/// The i-th accumulator of a thread.
float accumulator_in(const float* registers, unsigned i, SlabTypes types) {
  if (!types.f16_sums) return registers[i];
  return widened(bits_of(registers[i / 2]) >> (i % 2 * 16));
}
void put_accumulator(float* registers, unsigned i, SlabTypes types, float value) {
  if (!types.f16_sums) {
    registers[i] = value;
    return;
  }
  auto* const word = reinterpret_cast<std::uint32_t*>(registers) + i / 2;
  const std::uint32_t other = i % 2 == 0 ? 0xffff0000u : 0xffffu;
  *word = (*word & other) | f16_bits(value) << (i % 2 * 16);
}

/// "5 of 8: row 8, column 9 of the 64 x 16 tile": where a thread's i-th register of accumulators lies; of two
/// in a register, the first.
std::string accumulator_text(unsigned thread, unsigned n, unsigned at, SlabTypes types) {
  const unsigned i = types.f16_sums ? 2 * at : at;
  const unsigned row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
  const unsigned column = i / 4 * 8 + thread % 4 * 2 + i % 2;
  return fmt::format("{} of {}: row {}, column {} of the 64 x {} tile", at, register_count(n, types), row,
                     column, n);
}

/// The snapshot that holds these registers, or nullptr.
RegisterSnapshot* find_snapshot(WgmmaThread& me, const std::uint32_t* registers, unsigned count) {
  for (RegisterSnapshot& snapshot : me.known) {
    if (snapshot.registers <= registers && registers + count <= snapshot.registers + snapshot.count())
      return &snapshot;
  }
  return nullptr;
}

/// Forgets what is known of these registers; what a snapshot knows of others stays.
void forget(WgmmaThread& me, const std::uint32_t* registers, unsigned count) {
  for (std::size_t i = 0; i < me.known.size();) {
    RegisterSnapshot& snapshot = me.known[i];
    const std::uint32_t* end = snapshot.registers + snapshot.count();
    if (end <= registers || registers + count <= snapshot.registers) {
      ++i;
      continue;
    }
    RegisterSnapshot whole = std::move(snapshot);
    me.known.erase(me.known.begin() + static_cast<std::ptrdiff_t>(i));
    const auto keep = [&](const std::uint32_t* from, const std::uint32_t* to) {
      if (from >= to) return;
      RegisterSnapshot part = whole;
      part.registers = from;
      part.values.assign(whole.values.begin() + (from - whole.registers),
                         whole.values.begin() + (to - whole.registers));
      me.known.insert(me.known.begin() + static_cast<std::ptrdiff_t>(i), std::move(part));
      ++i;
    };
    keep(whole.registers, std::min(registers, end));
    keep(std::max(registers + count, whole.registers), end);
  }
}

RegisterSnapshot& remember(WgmmaThread& me, const std::uint32_t* registers, unsigned count, const char* event,
                           Where where) {
  RegisterSnapshot* snapshot = find_snapshot(me, registers, count);
  if (!snapshot || snapshot->registers != registers || snapshot->count() != count) {
    forget(me, registers, count);
    snapshot = &me.known.emplace_back();
    snapshot->registers = registers;
    snapshot->values.resize(count);
  }
  std::memcpy(snapshot->values.data(), registers, count * sizeof(std::uint32_t));
  snapshot->instruction = 0;
  snapshot->fenced = false;
  snapshot->event = event;
  snapshot->where = where;
  snapshot->fence = {};
  return *snapshot;
}

/// The first of these registers that does not hold what the snapshot says, or `count`. A register that holds
/// the compiler's paint was declared, not written.
unsigned changed_register(const RegisterSnapshot& snapshot, const std::uint32_t* registers, unsigned count) {
  const std::uint32_t* before = snapshot.values.data() + (registers - snapshot.registers);
  if (std::memcmp(before, registers, count * sizeof(std::uint32_t)) == 0) return count;
  for (unsigned i = 0; i < count; ++i) {
    if (before[i] != registers[i] && registers[i] != kPaintedRegister) return i;
  }
  return count;
}

[[noreturn]] void fail_fence(const Warpgroup& warpgroup, const std::string& headline, Where where) {
  engine_of(warpgroup).fail("wgmma-fence",
                            Report(headline)
                                .at(where, running_thread())
                                .rule("a wgmma.fence is needed before the first wgmma and again whenever "
                                      "other instructions have written its registers",
                                      "PTX ISA, \"wgmma.fence\""));
}

/// Registers that were written since the latest fence, and that `what` is about to use.
[[noreturn]] void fail_changed(const Warpgroup& warpgroup, const RegisterSnapshot& snapshot,
                               const std::string& headline, const std::string& place,
                               const std::uint32_t* now, Where where) {
  const std::uint32_t before = snapshot.values[static_cast<std::size_t>(now - snapshot.registers)];
  const bool fragment = snapshot.instruction != 0;
  const auto value = [fragment](std::uint32_t bits) {
    return fragment ? fmt::format("{:#010x}", bits) : fmt::format("{}", std::bit_cast<float>(bits));
  };
  Report report(headline);
  report.at(where, running_thread())
      .line("register", "{}; {} then, {} now", place, value(before), value(*now));
  report.line("before", "{} {}", snapshot.where.text(), snapshot.event);
  report.line("fence",
              snapshot.fence.packed() != 0
                  ? fmt::format("the latest wgmma_fence, at {}, precedes the write", snapshot.fence.text())
                  : std::string("no wgmma_fence has been executed since"));
  engine_of(warpgroup).fail("wgmma-fence",
                            report.rule("a wgmma.fence is needed between any access by a thread to "
                                        "accumulators or fragments of A and the wgmma that uses them",
                                        "PTX ISA, \"wgmma.fence\""));
}

/// The accumulators that an instruction takes over must be as they were at the latest fence.
void check_taken(const Warpgroup& warpgroup, WgmmaInstruction& instruction, WgmmaThread& thread, unsigned me,
                 const std::uint32_t* registers, const char* what) {
  const unsigned count = register_count(instruction.n, instruction.types);
  if (instruction.accumulate) {
    const std::uint32_t* painted = std::find(registers, registers + count, kPaintedRegister);
    if (painted != registers + count) {
      engine_of(warpgroup).fail(
          "wgmma-accumulator-uninitialised",
          Report("{} adds to accumulators that have never been written", what)
              .line("where", "{} by {}", instruction.where.text(), name_thread(running_thread()))
              .line("register",
                    accumulator_text(me, instruction.n, static_cast<unsigned>(painted - registers),
                                     instruction.types))
              .rule("a tile's first wgmma must have scale-d 0, or its accumulators must be set to zero "
                    "before wgmma.fence",
                    kMmaSection));
    }
  }
  const RegisterSnapshot* snapshot = find_snapshot(thread, registers, count);
  if (!snapshot) return;
  if (const unsigned i = changed_register(*snapshot, registers, count); i < count) {
    fail_changed(warpgroup, *snapshot,
                 fmt::format("{} uses accumulators that were written since the last wgmma_fence", what),
                 accumulator_text(me, instruction.n, i, instruction.types), registers + i, instruction.where);
  }
  if (!snapshot->fenced && !instruction.unfenced) {
    instruction.unfenced = true;
    instruction.handed_back = snapshot->where;
  }
}

/// All threads have executed the instruction, and none has changed its accumulators since they were handed
/// back. Reading them does not show, so the fence is asked for in any case.
void check_unfenced(const Warpgroup& warpgroup, const WgmmaInstruction& instruction, const char* what) {
  if (!instruction.unfenced || !course_rule_on(CourseRule::kWgmmaFenceAfterWait)) return;
  engine_of(warpgroup).fail(
      "wgmma-fence-after-wait",
      Report("{} uses accumulators that were returned since the last wgmma_fence", what)
          .line("where", "{} by {}", instruction.where.text(), role(warpgroup))
          .line("wait", "{} handed them back", instruction.handed_back.text())
          .missing("wgmma_fence between the wait at {} and this wgmma, in every iteration of the loop",
                   instruction.handed_back.text())
          .line(
              "reads",
              instruction.accumulate
                  ? "this wgmma adds to the accumulators that the wait returned. If no thread has read or "
                    "written these registers since, the PTX ISA requires no fence, and this rule is stricter"
                  : "this wgmma begins new sums (scale-d 0). The epilogue has read the old ones since the "
                    "wait, and a read is an access, so the PTX ISA itself requires the fence there")
          .rule("a wgmma.fence is needed between any access by a thread to accumulators, even a read, and "
                "the next wgmma on them",
                "PTX ISA, \"wgmma.fence\"")
          .course_rule(CourseRule::kWgmmaFenceAfterWait));
}

/// Reports accumulators that hold something else than the poison they were given at the issue.
void check_untouched(const Warpgroup& warpgroup, const Accumulator& accumulator, unsigned me,
                     const char* noticed, Where where) {
  const float* registers = accumulator.registers[me];
  const unsigned count = register_count(accumulator.n, accumulator.types);
  using Words = std::uint32_t __attribute__((vector_size(16)));
  const std::uint32_t poison = accumulator.poison[me];
  const Words untouched{poison, poison, poison, poison};
  Words difference{};
  for (unsigned i = 0; i < count; i += 4) {  // a multiple of 4
    Words words;
    std::memcpy(&words, registers + i, sizeof words);
    difference |= words ^ untouched;
  }
  if ((difference[0] | difference[1] | difference[2] | difference[3]) == 0) [[likely]]
    return;
  unsigned i = 0;
  while (bits_of(registers[i]) == accumulator.poison[me]) ++i;
  engine_of(warpgroup).fail(
      "wgmma-accumulator-written",
      Report("accumulators were written while wgmma was accumulating into them")
          .line("wgmma", "{} at {}", shape_text(accumulator.n, accumulator.types), accumulator.where.text())
          .line(noticed, "{} by {}", where.text(), name_thread(running_thread()))
          .line("register", "{}; it holds {} now", accumulator_text(me, accumulator.n, i, accumulator.types),
                registers[i])
          .rule("between a wgmma's issue and the wgmma.wait_group that covers it, no thread may access the "
                "registers",
                "PTX ISA, \"wgmma.wait_group\""));
}

/// A fragment of A has another value than the wgmma in flight that reads it was given.
[[noreturn]] void fail_fragment(const Warpgroup& warpgroup, const RegisterSnapshot& snapshot,
                                const std::uint32_t* changed, const char* noticed, Where where) {
  const auto i = static_cast<std::size_t>(changed - snapshot.registers);
  engine_of(warpgroup).fail(
      "wgmma-fragment-overwritten",
      Report("a fragment of A was overwritten while a wgmma that reads it was in flight")
          .line(noticed, "{} by {}", where.text(), name_thread(running_thread()))
          .line("wgmma", "{} {}", snapshot.where.text(), snapshot.event)
          .line("register", "{} of {}: {:#010x} then, {:#010x} now", i, snapshot.count(), snapshot.values[i],
                *changed)
          .missing("a wgmma.wait_group that covers the wgmma at {} before the registers are written, or a "
                   "separate fragment for the values that are loaded in the meantime",
                   snapshot.where.text())
          .rule("the registers of A belong to a wgmma until a wgmma.wait_group covers it",
                "PTX ISA, \"wgmma.wait_group\""));
}

/// The fragments that become the thread's again must be as the wgmma was given them. A variable of a function
/// that has returned is no register any more: its place lies below `frame`.
__attribute__((no_sanitize("address"))) void check_fragments(const Warpgroup& warpgroup,
                                                             const WgmmaThread& me, std::uint64_t covered,
                                                             const void* frame, Where where) {
  for (const RegisterSnapshot& snapshot : me.known) {
    if (snapshot.instruction <= me.waited || snapshot.instruction > covered || snapshot.registers < frame)
      continue;
    for (unsigned i = 0; i < snapshot.count(); ++i) {
      const std::uint32_t now = *const_cast<const volatile std::uint32_t*>(snapshot.registers + i);
      if (now != snapshot.values[i] && now != kPaintedRegister)
        fail_fragment(warpgroup, snapshot, snapshot.registers + i, "wait", where);
    }
  }
}

/// All threads have executed the instruction: it may run.
void issue(Warpgroup& warpgroup, const WgmmaInstruction& instruction, const char* what) {
  if (context.counters) {
    // What the tensor cores read from shared memory.
    const unsigned rows = instruction.n + (instruction.a_in_registers ? 0 : kRows);
    count_instruction(what, instruction.where, 1, kWarpgroupSize, std::uint64_t{rows} * kSlabBytes);
  }
  check_unfenced(warpgroup, instruction, what);
  ++warpgroup.issued;
  if (EventLog::on()) {
    EventLog::write({.event = "wgmma",
                     .cta = warpgroup.cta,
                     .thread = &warpgroup.cta->threads[warpgroup.first_thread],
                     .number = static_cast<std::int64_t>(warpgroup.issued),
                     .where = instruction.where});
  }
  if (engine_of(warpgroup).earliest()) execute_front(warpgroup);
}

[[noreturn]] void fail_divergence(const Warpgroup& warpgroup, const WgmmaInstruction& theirs,
                                  const std::string& mine, Where where) {
  std::vector<std::uint32_t> arrived;
  for (unsigned i = 0; i < kWarpgroupSize; ++i) {
    if (theirs.has_arrived[i]) arrived.push_back(warpgroup.first_thread + i);
  }
  engine_of(warpgroup).fail(
      "wgmma-divergence",
      Report("the threads of a warpgroup execute different wgmma instructions")
          .line("by", role(warpgroup))
          .line("one", "{} execute {}{}, B {}, {}", ranges("thread", arrived), instruction_text(theirs),
                theirs.a_in_registers ? std::string(", A in registers") : fmt::format(", A {:#x}", theirs.a),
                fmt::format("{:#x}", theirs.b), theirs.accumulate ? "accumulating" : "overwriting")
          .line("other", "{} executes {} at {}", name_thread(running_thread()), mine, where.text())
          .rule("all threads in a warpgroup must execute the same instruction with the same descriptors, "
                "shape, scale-d and registers",
                kMmaSection));
}

/// The accumulators that the registers belong to, taking them over when they are not in flight.
Accumulator& take_registers(Warpgroup& warpgroup, WgmmaInstruction& instruction, bool first, unsigned me,
                            float* d, const char* what) {
  WgmmaThread& thread = warpgroup.threads[me];
  const unsigned count = register_count(instruction.n, instruction.types);
  for (const auto& accumulator : warpgroup.accumulators) {
    float* registers = accumulator->registers[me];
    if (!registers || d + count <= registers ||
        registers + register_count(accumulator->n, accumulator->types) <= d)
      continue;
    if (registers != d || accumulator->n != instruction.n || accumulator->types != instruction.types) {
      engine_of(warpgroup).fail(
          "wgmma-registers",
          Report("some of this wgmma's accumulators belong to a wgmma with another shape that is still in "
                 "flight")
              .line("where", "{} by {}", instruction_text(instruction), name_thread(running_thread()))
              .line("other", "{} at {}", shape_text(accumulator->n, accumulator->types),
                    accumulator->where.text())
              .rule("instructions in flight may share accumulators only if they have the same shape",
                    "PTX ISA, \"wgmma.fence\""));
    }
    if (first) instruction.accumulator = accumulator.get();
    if (instruction.accumulator != accumulator.get()) {
      fail_divergence(warpgroup, instruction, "it with other accumulators", instruction.where);
    }
    return *accumulator;
  }
  if (first) {
    warpgroup.accumulators.push_back(std::make_unique<Accumulator>());
    instruction.accumulator = warpgroup.accumulators.back().get();
    instruction.accumulator->n = instruction.n;
    instruction.accumulator->types = instruction.types;
    instruction.accumulator->d.resize(std::size_t{kRows} * instruction.n);
    instruction.fresh = true;
  }
  if (!instruction.fresh)
    fail_divergence(warpgroup, instruction, "it with other accumulators", instruction.where);
  Accumulator& accumulator = *instruction.accumulator;
  check_taken(warpgroup, instruction, thread, me, as_words(d), what);
  forget(thread, as_words(d), count);
  if (instruction.accumulate) {
    for_fragment(me, instruction.n, [&](unsigned i, unsigned at) {
      accumulator.d[at] = accumulator_in(d, i, instruction.types);
    });
  }
  const std::uint32_t poison = poison_number(thread.instructions);
  std::fill_n(reinterpret_cast<std::uint32_t*>(d), count, poison);
  accumulator.registers[me] = d;
  accumulator.poison[me] = poison;
  ++accumulator.holders;
  running_thread().may_hold_poison = true;
  if (++thread.in_flight == 1) trap_poison();
  return accumulator;
}

/// Hands accumulators back whose latest instruction is among the first `covered`.
void give_back(Warpgroup& warpgroup, unsigned me, std::uint64_t covered, Where where) {
  WgmmaThread& thread = warpgroup.threads[me];
  for (auto& accumulator : warpgroup.accumulators) {
    float* registers = accumulator->registers[me];
    if (!registers || accumulator->last[me] > covered) continue;
    check_untouched(warpgroup, *accumulator, me, "wait", where);
    --thread.in_flight;
    for_fragment(me, accumulator->n, [&](unsigned i, unsigned at) {
      put_accumulator(registers, i, accumulator->types, accumulator->d[at]);
    });
    accumulator->registers[me] = nullptr;
    --accumulator->holders;
    remember(thread, as_words(registers), register_count(accumulator->n, accumulator->types),
             "handed them back", where);
  }
  std::erase_if(warpgroup.accumulators, [&](const auto& accumulator) {
    return accumulator->holders == 0 && std::none_of(warpgroup.queue.begin(), warpgroup.queue.end(),
                                                     [&](const WgmmaInstruction& instruction) {
                                                       return instruction.accumulator == accumulator.get();
                                                     });
  });
}

std::string wgmma_wait_detail(const Thread& thread) {
  const HopperCta& cta = thread.cta->gang->hopper->cta(*thread.cta);
  const Warpgroup& warpgroup = *cta.warpgroups[thread.index / kWarpgroupSize];
  return fmt::format("for the first {} wgmma of its warpgroup, {} are done",
                     warpgroup.threads[thread.index - warpgroup.first_thread].target, warpgroup.done);
}

}  // namespace

namespace {

/// The variables may be gone by now, and their place in the thread's stack another's: then nothing compares
/// these values any more.
__attribute__((no_sanitize("address"))) void look_again(RegisterSnapshot& snapshot) {
  const volatile std::uint32_t* registers = snapshot.registers;
  for (unsigned i = 0; i < snapshot.count(); ++i) snapshot.values[i] = registers[i];
}

}  // namespace

void wgmma_fence(Where where) {
  constexpr const char* kWhat = "wgmma_fence";
  if (is_left_out(kWhat, where)) return;
  require_convergence(kWhat, where);
  Warpgroup& warpgroup = my_warpgroup(kWhat, where);
  note_warp_instruction(kWhat, where);
  const Thread& thread = running_thread();
  if (context.counters) count_instruction(kWhat, where, thread.index == warpgroup.first_thread, 1);
  WgmmaThread& me = warpgroup.threads[thread.index - warpgroup.first_thread];
  ++me.fences;
  me.latest = where;
  for (RegisterSnapshot& snapshot : me.known) {
    snapshot.fence = where;
    snapshot.fenced = true;
    // Fragments that a wgmma in flight reads: a write is a fault, fence or not, so the old values stay.
    if (snapshot.instruction > me.waited) continue;
    look_again(snapshot);
  }
}

void wgmma_fence_operand(const void* registers, unsigned count, Where where) {
  constexpr const char* kWhat = "wgmma_fence_operand";
  Warpgroup& warpgroup = my_warpgroup(kWhat, where);
  const unsigned index = running_thread().index - warpgroup.first_thread;
  WgmmaThread& me = warpgroup.threads[index];
  const std::uint32_t* begin = as_words(registers);
  bool known = false;
  for (const auto& accumulator : warpgroup.accumulators) {
    const std::uint32_t* held = as_words(accumulator->registers[index]);
    if (!held || held + register_count(accumulator->n, accumulator->types) <= begin || begin + count <= held)
      continue;
    check_untouched(warpgroup, *accumulator, index, "noticed", where);
    known = true;
  }
  for (const RegisterSnapshot& snapshot : me.known)
    known = known || (snapshot.registers < begin + count && begin < snapshot.registers + snapshot.count());
  if (known) return;
  remember(me, begin, count, "named them in wgmma_fence_operand", where).fenced = true;
}

void check_loaded_registers(const char* what, const std::uint32_t* registers, unsigned count, Where where) {
  const Thread& thread = running_thread();
  HopperEngine* const engine = thread.cta->gang->hopper;
  if (!engine) return;
  const auto& warpgroups = engine->cta(*thread.cta).warpgroups;
  if (thread.index / kWarpgroupSize >= warpgroups.size()) return;
  const Warpgroup& warpgroup = *warpgroups[thread.index / kWarpgroupSize];
  const WgmmaThread& me = warpgroup.threads[thread.index - warpgroup.first_thread];
  if (me.waited == me.instructions) return;
  for (const RegisterSnapshot& snapshot : me.known) {
    if (snapshot.instruction <= me.waited || snapshot.registers >= registers + count ||
        registers >= snapshot.registers + snapshot.count())
      continue;
    engine_of(warpgroup).fail(
        "wgmma-fragment-overwritten",
        Report("a fragment of A was overwritten while a wgmma that reads it was in flight")
            .line("where", "{} at {} by {}", what, where.text(), name_thread(thread))
            .line("wgmma",
                  "{} {}; {} of {} wgmma instructions are covered by a wait, and this one is number {}",
                  snapshot.where.text(), snapshot.event, me.waited, me.instructions, snapshot.instruction)
            .missing("a wgmma.wait_group that covers the wgmma at {} before {} at {}, or a separate fragment "
                     "for the values that are loaded in the meantime",
                     snapshot.where.text(), what, where.text())
            .rule("the registers of A belong to a wgmma until a wgmma.wait_group covers it",
                  "PTX ISA, \"wgmma.wait_group\""));
  }
}

void wgmma_mma(const char* what, unsigned n, void* registers, std::uint64_t a, const std::uint32_t* fragment,
               std::uint64_t b, bool accumulate, Where where, SlabTypes types, Transposed transposed) {
  auto* const d = static_cast<float*>(registers);
  require_convergence(what, where);
  Warpgroup& warpgroup = my_warpgroup(what, where);
  note_warp_instruction(what, where);
  const unsigned me = running_thread().index - warpgroup.first_thread;
  WgmmaThread& thread = warpgroup.threads[me];
  const std::size_t index = thread.instructions - warpgroup.done;
  const bool first = index == warpgroup.queue.size();
  if (first) {
    warpgroup.queue.emplace_back();
    WgmmaInstruction& instruction = warpgroup.queue.back();
    instruction.n = n;
    instruction.types = types;
    instruction.a_in_registers = fragment != nullptr;
    instruction.a = a;
    instruction.b = b;
    instruction.transposed = transposed;
    instruction.accumulate = accumulate;
    instruction.where = where;
    if (fragment) instruction.fragments.resize(std::size_t{4} * kWarpgroupSize);
  }
  WgmmaInstruction& instruction = warpgroup.queue[index];
  if (!first &&
      (instruction.n != n || instruction.types != types || instruction.transposed != transposed ||
       instruction.a_in_registers != (fragment != nullptr) || instruction.a != a || instruction.b != b ||
       instruction.accumulate != accumulate || !instruction.where.is_line_of(where))) {
    fail_divergence(warpgroup, instruction,
                    fmt::format("{}, {}, B {:#x}, {}", shape_text(n, types),
                                fragment ? std::string("A in registers") : fmt::format("A {:#x}", a), b,
                                accumulate ? "accumulating" : "overwriting"),
                    where);
  }
  if (thread.fences == 0)
    fail_fence(warpgroup, fmt::format("{} is executed before any wgmma_fence", what), where);
  if (first) start(warpgroup, instruction, thread.instructions);
  check_order(warpgroup, instruction);
  Accumulator& accumulator = take_registers(warpgroup, instruction, first, me, d, what);
  ++thread.instructions;
  thread.latest = where;
  if (timeline_on()) log_together(OperationKind::kWgmma, 0, n, 0, where);
  accumulator.last[me] = thread.instructions;
  accumulator.where = where;
  if (fragment) {
    const RegisterSnapshot* snapshot = find_snapshot(thread, fragment, 4);
    if (snapshot) {
      if (const unsigned i = changed_register(*snapshot, fragment, 4); i < 4) {
        if (snapshot->instruction > thread.waited)
          fail_fragment(warpgroup, *snapshot, fragment + i, "noticed", where);
        fail_changed(
            warpgroup, *snapshot,
            fmt::format("{} reads a fragment of A that was written since the last wgmma_fence", what),
            fmt::format("{} of 4 of the fragment", i), fragment + i, where);
      }
    }
    remember(thread, fragment, 4, "read them", where).instruction = thread.instructions;
    std::copy_n(fragment, 4, instruction.fragments.begin() + std::ptrdiff_t{4} * me);
  }
  if (explore::is_choosing()) explore::executes_wgmma(warpgroup, thread.instructions);
  instruction.has_arrived[me] = true;
  if (++instruction.arrived == kWarpgroupSize) issue(warpgroup, instruction, what);
}

void wgmma_commit_group(Where where) {
  constexpr const char* kWhat = "wgmma_commit_group";
  if (is_left_out(kWhat, where)) return;
  require_convergence(kWhat, where);
  Warpgroup& warpgroup = my_warpgroup(kWhat, where);
  note_warp_instruction(kWhat, where);
  const Thread& thread = running_thread();
  if (context.counters) count_instruction(kWhat, where, thread.index == warpgroup.first_thread, 1);
  WgmmaThread& me = warpgroup.threads[thread.index - warpgroup.first_thread];
  const std::uint64_t group = me.committed++;
  me.latest = where;
  if (me.in_flight != 0) trap_poison();  // an exception that was nobody's fault has switched it off
  if (timeline_on()) log_together(OperationKind::kWgmmaCommit, 0, 0, 0, where);
  if (group == warpgroup.group_end.size()) {
    warpgroup.group_end.push_back(me.instructions);
    warpgroup.group_where.push_back(where);
  } else if (warpgroup.group_end[group] != me.instructions) {
    engine_of(warpgroup).fail(
        "wgmma-divergence",
        Report("the threads of a warpgroup commit different wgmma groups")
            .line("one", "group {} ends after {} instructions at {}", group, warpgroup.group_end[group],
                  warpgroup.group_where[group].text())
            .line("other", "{} ends it after {} at {}", name_thread(thread), me.instructions, where.text())
            .rule("all threads in a warpgroup must execute the same wgmma instructions",
                  "PTX ISA, \"wgmma.commit_group\""));
  }
}

void wgmma_wait_group(std::uint64_t pending, Where where) {
  constexpr const char* kWhat = "wgmma_wait_group";
  if (is_left_out(kWhat, where, pending)) return;
  require_convergence(kWhat, where);
  Warpgroup& warpgroup = my_warpgroup(kWhat, where);
  note_warp_instruction(kWhat, where);
  Thread& thread = running_thread();
  if (context.counters) count_instruction(kWhat, where, thread.index == warpgroup.first_thread, 1);
  const unsigned index = thread.index - warpgroup.first_thread;
  WgmmaThread& me = warpgroup.threads[index];
  if (timeline_on())
    log_together(OperationKind::kWgmmaWait, static_cast<std::uint32_t>(pending), 0, 0, where);
  me.latest = where;
  ++me.waits;
  me.at_wait = me.committed;
  me.left = pending;
  me.waited_at = where;
  const std::uint64_t groups = me.committed > pending ? me.committed - pending : 0;
  const std::uint64_t target = groups == 0 ? 0 : warpgroup.group_end[groups - 1];
  if (warpgroup.done < target) {
    me.target = target;
    warpgroup.waiting.push_back(&thread);
    thread.cta->gang->block(
        {.kind = WaitKind::kObject, .what = kWhat, .where = where, .detail = wgmma_wait_detail});
  }
  if (explore::is_choosing()) explore::has_waited_for_wgmma(warpgroup, target);
  check_fragments(warpgroup, me, target, __builtin_frame_address(0), where);
  me.waited = std::max(me.waited, target);
  give_back(warpgroup, index, target, where);
  if (ledger_on()) ledger_engine_done(thread, LedgerReader::kWgmma, me.waited);
  thread.clock.add(agent_stamp(*thread.cta, warpgroup.agent, static_cast<std::uint32_t>(me.waited)));
}

namespace {

/// The wgmma that holds the register, and how far the thread has waited; then the rule.
[[noreturn]] void fail_read(const Thread& thread, HopperEngine& engine, Report& report, std::uint32_t value) {
  const HopperCta& cta = engine.cta(*thread.cta);
  if (thread.index / kWarpgroupSize < cta.warpgroups.size()) {
    const Warpgroup& warpgroup = *cta.warpgroups[thread.index / kWarpgroupSize];
    const unsigned index = thread.index - warpgroup.first_thread;
    const WgmmaThread& me = warpgroup.threads[index];
    for (const auto& accumulator : warpgroup.accumulators) {
      if (accumulator->registers[index] && accumulator->poison[index] == (value & ~kQuietBit)) {
        report.line("wgmma", "{} at {}", shape_text(accumulator->n, accumulator->types),
                    accumulator->where.text());
      }
    }
    const auto covered = std::upper_bound(warpgroup.group_end.begin(), warpgroup.group_end.end(), me.waited);
    report.line("groups", "{} committed, {} waited for", me.committed, covered - warpgroup.group_end.begin());
    const bool committed = covered != warpgroup.group_end.end();
    report.missing(committed ? "wgmma.wait_group that covers the latest group of the accumulators "
                               "(wait_group<0> covers all), before they are read"
                             : "wgmma.commit_group after the wgmma, and a wgmma.wait_group for it, before "
                               "the accumulators are read");
  }
  engine.fail(
      "wgmma-accumulator-read",
      report.rule("accumulators may be read only after the wgmma.wait_group that covers their last wgmma",
                  "PTX ISA, \"wgmma.wait_group\""));
}

}  // namespace

namespace {

/// Reports it where the value is that of registers of a tcgen05.ld; else returns.
void explain_tensor_poison(const Thread& thread, const std::string& headline, std::uint32_t value,
                           std::optional<Where> where = {}) {
  HopperEngine* const engine = thread.cta->gang->hopper;
  if (engine == nullptr || !engine->tcgen05) return;
  Report report(headline);
  where ? report.at(*where, thread) : report.line("by", name_thread(thread));
  if (engine->tcgen05->explain_poison(report, thread, value)) engine->fail("tcgen05-ld-not-waited", report);
}

}  // namespace

void fail_poisoned(const char* what, std::uint32_t value, Where where) {
  const Thread& thread = this_thread(what, where);
  ignore_poison();
  explain_tensor_poison(thread, fmt::format("{} uses a register that tcgen05.ld had not filled", what), value,
                        where);
  Report report("{} uses an accumulator that wgmma had not finished when it was read", what);
  report.at(where, thread);
  fail_read(thread, hopper_engine(what, where), report, value);
}

void fail_trapped(std::uint32_t value, Where where) {
  const Thread& thread = running_thread();
  explain_tensor_poison(thread, "arithmetic uses a register that tcgen05.ld had not filled", value);
  Report report("arithmetic uses an accumulator that wgmma had not finished when it was read");
  report.line("by", name_thread(thread));
  report.line("behind", "{}, its latest wgmma instruction", where.text());
  fail_read(thread, hopper_engine("arithmetic", where), report, value);
}

std::uint64_t wgmma_executed(const Thread& thread) {
  const auto& warpgroups = thread.cta->gang->hopper->cta(*thread.cta).warpgroups;
  const std::size_t index = thread.index / kWarpgroupSize;
  if (index >= warpgroups.size()) return 0;
  return warpgroups[index]->threads[thread.index % kWarpgroupSize].instructions;
}

std::size_t wgmma_pending(const Warpgroup& warpgroup) {
  return warpgroup.issued - warpgroup.done;
}

void wgmma_complete(Warpgroup& warpgroup, Random& random) {
  const std::uint32_t count = random.below(static_cast<std::uint32_t>(wgmma_pending(warpgroup))) + 1;
  for (std::uint32_t i = 0; i < count; ++i) execute_front(warpgroup);
}

bool wgmma_serve_waits(Warpgroup& warpgroup) {
  bool served = false;
  while (!warpgroup.waiting.empty() && wgmma_pending(warpgroup) > 0) {
    execute_front(warpgroup);
    served = true;
  }
  return served;
}

void wgmma_thread_exits(Warpgroup& warpgroup, Thread& thread) {
  const WgmmaThread& me = warpgroup.threads[thread.index - warpgroup.first_thread];
  if (me.waited == me.instructions || !course_rule_on(CourseRule::kExitInFlight)) return;
  engine_of(warpgroup).fail(
      "exit-in-flight", Report("a thread returns while wgmma may still be running")
                            .line("by", name_thread(thread))
                            .line("wgmma", "{} instructions in {} committed groups; {} are covered by a wait",
                                  me.instructions, me.committed, me.waited)
                            .rule("a thread must execute wgmma.wait_group 0 before it ends, because shared "
                                  "memory and registers pass to the next CTA",
                                  "PTX ISA, \"wgmma.wait_group\"")
                            .course_rule(CourseRule::kExitInFlight));
}

std::string describe_wgmma(const Warpgroup& warpgroup) {
  for (const WgmmaInstruction& instruction : warpgroup.queue) {
    if (instruction.arrived == kWarpgroupSize) continue;
    if (warpgroup.waiting.empty()) return {};
    std::vector<std::uint32_t> arrived;
    for (unsigned i = 0; i < kWarpgroupSize; ++i) {
      if (instruction.has_arrived[i]) arrived.push_back(warpgroup.first_thread + i);
    }
    return fmt::format("{} of {} has been executed only by {}", instruction_text(instruction),
                       role(warpgroup), ranges("thread", arrived));
  }
  return {};
}

}  // namespace emulator
