#include "code/opcodes.h"

#include <algorithm>
#include <utility>

namespace sass {

std::string_view to_string(Class value) {
  switch (value) {
    case Class::kMatrixMath:
      return "matrix math";
    case Class::kMath:
      return "math";
    case Class::kGlobalLoad:
      return "global load";
    case Class::kGlobalStore:
      return "global store";
    case Class::kAsyncCopy:
      return "async copy";
    case Class::kSharedLoad:
      return "shared load";
    case Class::kSharedStore:
      return "shared store";
    case Class::kMatrixLoad:
      return "matrix load";
    case Class::kLocal:
      return "local (spill)";
    case Class::kConstantLoad:
      return "constant load";
    case Class::kAtomic:
      return "atomic";
    case Class::kBarrier:
      return "barrier";
    case Class::kConversion:
      return "conversion";
    case Class::kAddress:
      return "address";
    case Class::kCompare:
      return "compare";
    case Class::kMove:
      return "move";
    case Class::kControl:
      return "control";
    case Class::kOther:
      return "other";
  }
  return "other";
}

const std::vector<Class>& all_classes() {
  static const std::vector<Class> kClasses = [] {
    std::vector<Class> result;
    for (int i = 0; i <= static_cast<int>(Class::kOther); ++i) result.push_back(static_cast<Class>(i));
    return result;
  }();
  return kClasses;
}

namespace {

/// The opcodes that the course does not meet; they have no summary.
constexpr std::pair<Class, std::string_view> kNotMet[] = {
    {Class::kMatrixMath, "BMMA DMMA BGMMA"},
    {Class::kMath,
     "FFMA32I FADD32I FMUL32I FMNMX FSWZADD HADD2_32I HFMA2_32I HMUL2 HMUL2_32I HMNMX2 "
     "VHMNMX DADD DFMA DMUL"},
    {Class::kGlobalLoad, "LDGMC"},
    {Class::kAsyncCopy, "UBLKPF UBLKRED"},
    {Class::kAtomic, "ATOM REDAS"},
    {Class::kBarrier, "WARPGROUPSET ERRBAR CGAERRBAR CCTL CCTLL CCTLT ACQBULK"},
    {Class::kConversion, "F2I I2F I2FP I2I I2IP FRND"},
    {Class::kAddress,
     "IADD IADD32I VIADDMNMX VIMNMX3 IABS IDP IDP4A IMUL IMUL32I ISCADD ISCADD32I LOP "
     "LOP32I SHL SHR SGXT BMSK BREV FLO POPC VABSDIFF VABSDIFF4 ULOP ULOP32I USHL USHR "
     "USGXT UBMSK UBREV UFLO UPOPC ULEPC"},
    {Class::kCompare, "FSET FCHK FSEL HSET2 HSETP2 DSETP PSETP UPSETP UP2UR UR2UP MATCH"},
    {Class::kMove, "MOV32I B2R R2B RPCMOV LEPC"},
    {Class::kControl, "BRXU JMP JMX JMXU KILL BREAK ENDCOLLECTIVE PREEXIT"},
    {Class::kOther, "PMTRIG QSPC GETLMEMBASE SETLMEMBASE SETCTAID"},
};

}  // namespace

const std::vector<Opcode>& opcode_table() {
  using enum Class;
  static const std::vector<Opcode> kTable = [] {
    std::vector<Opcode> table = {
        // Matrix math.
        {"HMMA", kMatrixMath,
         "tensor core multiply-add of one warp, 16-bit floats: mma.sync (16816 = m16n8k16)"},
        {"HGMMA", kMatrixMath,
         "tensor core multiply-add of a warpgroup from shared memory, 16-bit floats: wgmma (64xNx16)"},
        {"UTCHMMA", kMatrixMath,
         "Blackwell: tensor core multiply-add into tensor memory, 16-bit floats: tcgen05.mma"},
        {"UTCQMMA", kMatrixMath, "the same for 8 bits and, with scales, for 6 and 4: .kind::mxf8f6f4"},
        {"UTCOMMA", kMatrixMath, "the same for 4 bits with scales: .kind::mxf4, .kind::mxf4nvf4"},
        {"QGMMA", kMatrixMath, "HGMMA for fp8"},
        {"IGMMA", kMatrixMath, "the same for 8-bit integers"},
        {"IMMA", kMatrixMath, "tensor core multiply-add of one warp, integers"},
        // Math.
        {"FFMA", kMath, "fp32 multiply-add, one per thread"},
        {"FADD", kMath, "fp32 add"},
        {"FMUL", kMath, "fp32 multiply"},
        {"FMNMX3", kMath, "Blackwell: the largest or the smallest of three fp32"},
        {"MUFU", kMath, "reciprocal, exponential and other special functions"},
        {"HADD2", kMath, "two 16-bit adds; with .F32 a conversion"},
        {"HFMA2", kMath, "two 16-bit multiply-adds; with RZ operands a way to load a constant"},
        // Global memory.
        {"LDG", kGlobalLoad, "load from global memory into registers"},
        {"LD", kGlobalLoad, "load through a generic address: the compiler could not tell the state space"},
        {"STG", kGlobalStore, "store registers to global memory"},
        {"ST", kGlobalStore, "store through a generic address"},
        // Copies that do not pass through registers.
        {"LDGSTS", kAsyncCopy, "copy global to shared memory asynchronously: cp.async"},
        {"UTMALDG", kAsyncCopy, "TMA load of a tile: cp.async.bulk.tensor, global to shared"},
        {"UTMASTG", kAsyncCopy, "TMA store of a tile: cp.async.bulk.tensor, shared to global"},
        {"UTMAREDG", kAsyncCopy, "TMA reduction of a tile into global memory"},
        {"UTMAPF", kAsyncCopy, "TMA prefetch of a tile into L2"},
        {"UBLKCP", kAsyncCopy, "bulk copy of contiguous bytes: cp.async.bulk"},
        {"UTCCP", kAsyncCopy, "Blackwell: copy shared to tensor memory: tcgen05.cp"},
        {"UGETNEXTWORKID", kAsyncCopy,
         "Blackwell: asks the hardware that launches CTAs for a cluster that has not started: "
         "clusterlaunchcontrol.try_cancel"},
        // Shared memory.
        {"LDTM", kMatrixLoad, "Blackwell: a warp loads from tensor memory: tcgen05.ld"},
        {"STTM", kMatrixLoad, "Blackwell: a warp stores to tensor memory: tcgen05.st"},
        {"LDS", kSharedLoad, "load from shared memory into registers"},
        {"STS", kSharedStore, "store registers to shared memory"},
        {"STAS", kSharedStore, "asynchronous store to another CTA's shared memory"},
        {"LDSM", kMatrixLoad,
         "load 8x8 matrices of 16-bit elements from shared memory, spread as fragments: ldmatrix"},
        {"STSM", kMatrixLoad, "the reverse: stmatrix"},
        {"MOVM", kMatrixLoad, "transpose a fragment in registers: movmatrix"},
        // Local memory.
        {"LDL", kLocal,
         "load from the thread's stack: an array with a run-time index, or a spilled register"},
        {"STL", kLocal, "store to the thread's stack"},
        // Constants.
        {"LDC", kConstantLoad, "load from the constant bank: kernel parameters"},
        {"ULDC", kConstantLoad, "the same into a uniform register"},
        // Atomics.
        {"ATOMG", kAtomic, "atomic operation on global memory that returns the old value"},
        {"UTCATOMSWS", kAtomic,
         "Blackwell: takes and gives back columns of tensor memory: tcgen05.alloc, tcgen05.dealloc"},
        {"ATOMS", kAtomic, "atomic operation on shared memory"},
        {"RED", kAtomic, "atomic operation that returns nothing"},
        {"REDG", kAtomic, "atomic operation on global memory that returns nothing"},
        {"REDUX", kAtomic, "reduction across the lanes of a warp"},
        // Barriers and waits.
        {"UTCBAR", kBarrier,
         "Blackwell: an mbarrier is to count an arrival when the UTCHMMA so far are done: tcgen05.commit"},
        {"BAR", kBarrier, "barrier of the block: __syncthreads, bar.sync"},
        {"SYNCS", kBarrier, "mbarrier: .EXCH init, .ARRIVE arrive and expect_tx, .PHASECHK try_wait"},
        {"ARRIVES", kBarrier, "arrive on an mbarrier when earlier LDGSTS are done"},
        {"LDGDEPBAR", kBarrier, "closes a group of LDGSTS: cp.async.commit_group"},
        {"DEPBAR", kBarrier, "waits until at most N groups are pending: cp.async.wait_group"},
        {"WARPGROUP", kBarrier, ".ARRIVE wgmma.fence, .DEPBAR wgmma.wait_group"},
        {"WARPSYNC", kBarrier, "converges the lanes of a warp: __syncwarp"},
        {"MEMBAR", kBarrier, "memory fence: __threadfence"},
        {"FENCE", kBarrier,
         "fence between the generic and the async proxy: .VIEW.ASYNC is fence.proxy.async"},
        {"UCGABAR_ARV", kBarrier, "arrive at the barrier of the cluster"},
        {"UCGABAR_WAIT", kBarrier, "wait at the barrier of the cluster"},
        {"UTMACMDFLUSH", kBarrier, "closes a group of TMA stores: cp.async.bulk.commit_group"},
        {"UTMACCTL", kBarrier, "prefetch or fence of a tensor map"},
        // Conversions.
        {"F2FP", kConversion, "two fp32 to one packed pair: cvt.rn.bf16x2.f32"},
        {"F2F", kConversion, "between float formats"},
        {"PRMT", kConversion, "picks four bytes out of two registers; packs and unpacks 16-bit values"},
        // Integer and address arithmetic.
        {"IMAD", kAddress,
         "integer multiply-add; also the compiler's move (.MOV), add (.IADD) and shift (.SHL)"},
        {"IADD3", kAddress, "add three integers"},
        {"VIADD", kAddress, "add two integers"},
        {"VIMNMX", kAddress, "integer minimum or maximum"},
        {"IMNMX", kAddress, "integer minimum or maximum"},
        {"LEA", kAddress, "shift and add: base + index * size"},
        {"LOP3", kAddress, "any logic function of three operands"},
        {"SHF", kAddress, "shift; .HI or a second source make it a 64-bit funnel shift"},
        {"UIADD3", kAddress, "U...: the same on the warp's uniform registers, once per warp"},
        {"UIMAD", kAddress, "uniform IMAD"},
        {"ULEA", kAddress, "uniform LEA"},
        {"ULOP3", kAddress, "uniform LOP3"},
        {"USHF", kAddress, "uniform SHF"},
        {"UPRMT", kAddress, "uniform PRMT"},
        // Predicates.
        {"ISETP", kCompare, "compare integers into a predicate"},
        {"FSETP", kCompare, "compare fp32 into a predicate"},
        {"PLOP3", kCompare, "logic on predicates"},
        {"P2R", kCompare, "predicates into a register, to keep them"},
        {"R2P", kCompare, "and back"},
        {"SEL", kCompare, "select by a predicate"},
        {"UISETP", kCompare, "uniform ISETP"},
        {"UPLOP3", kCompare, "uniform PLOP3"},
        {"USEL", kCompare, "uniform SEL"},
        {"VOTE", kCompare, "one bit per lane, or all/any: __ballot_sync"},
        {"VOTEU", kCompare, "the same into a uniform register"},
        {"ELECT", kCompare, "picks one lane: elect.sync"},
        // Moves.
        {"MOV", kMove, "register move"},
        {"UMOV", kMove, "uniform register move"},
        {"R2UR", kMove, "vector to uniform register: the value must be the same in every lane"},
        {"S2R", kMove, "special register (thread and block index) into a register"},
        {"S2UR", kMove, "the same into a uniform register"},
        {"CS2R", kMove, "the same, 64 bits; with SRZ the usual way to zero a register pair"},
        {"SHFL", kMove, "exchange between lanes: __shfl_sync"},
        {"BMOV", kMove, "moves a reconvergence barrier"},
        // Control.
        {"BRA", kControl, "branch"},
        {"BRX", kControl, "branch through a table"},
        {"CALL", kControl, "call of a function that was not inlined"},
        {"RET", kControl, "return"},
        {"EXIT", kControl, "the thread ends"},
        {"BPT", kControl, "trap"},
        {"BSSY", kControl, "expects where diverged lanes will meet again"},
        {"BSYNC", kControl, "waits there for them"},
        {"YIELD", kControl, "lets other warps go first; stands in loops that wait"},
        {"NANOSLEEP", kControl, "pauses the thread"},
        {"USETMAXREG", kControl, "gives registers to the CTA's pool or takes them from it: setmaxnreg"},
        // The rest.
        {"NOP", kOther, "nothing"},
    };
    for (auto [kind, names] : kNotMet) {
      while (!names.empty()) {
        const std::size_t end = std::min(names.find(' '), names.size());
        table.push_back({names.substr(0, end), kind, ""});
        names.remove_prefix(std::min(end + 1, names.size()));
      }
    }
    return table;
  }();
  return kTable;
}

const Opcode* find_opcode(std::string_view name) {
  const auto& table = opcode_table();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Opcode& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace sass
