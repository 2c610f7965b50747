// The asm statement of wgmma.mma_async in every width N, as macros: a statement must name each register of
// the accumulator, N / 2 of them in a thread, and count the operands behind them.
//
// A function of wgmma_mma_async.cuh, wgmma_types.cuh or wgmma_transposed.cuh is one line with these,
//   GEMM_WGMMA_EACH_WIDTH(GEMM_WGMMA_SS, "k16.f32.f16.f16", "+f", ", 1, 1, 0, 0")
// which stands for 32 statements like this, of which the compiler takes that of its template argument kN:
//   if constexpr (kN == 8)
//     asm volatile(
//         "{\n"
//         ".reg .pred accumulate;\n"
//         "setp.ne.b32 accumulate, %6, 0;\n"
//         "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, accumulate, 1, 1, 0,
//         0;\n"
//         "}"
//         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
//         : "l"(a), "l"(b), "r"(scale_d)
//         : "memory");
// clang-format off
#pragma once

/// What is the same in all: N, the numbers of the registers and of scale_d, the opcode's shape and types; then A, B and the
/// immediates as text, the constraint of a register of D, and the inputs.
#define GEMM_WGMMA_STATEMENT(N, REGISTERS, SCALE, OPCODE, OPERANDS, KIND, ...)                                     \
  if constexpr (kN == N)                                                                                           \
    asm volatile(                                                                                                  \
        "{\n"                                                                                                      \
        ".reg .pred accumulate;\n"                                                                                 \
        "setp.ne.b32 accumulate, %" #SCALE ", 0;\n"                                                                \
        "wgmma.mma_async.sync.aligned.m64n" #N OPCODE " {" GEMM_WGMMA_REGISTERS_##REGISTERS "}, " OPERANDS ";\n"    \
        "}"                                                                                                        \
        : GEMM_WGMMA_ACCUMULATOR_##REGISTERS(KIND)                                                                 \
        : __VA_ARGS__                                                                                              \
        : "memory");

/// A from shared memory (SS) or registers (RS). Behind the last register, operand R - 1, stand a, b and scale_d. IMMEDIATES: scale-a,
/// scale-b and, for 16 bits, which operands are MN-major.
#define GEMM_WGMMA_SS(N, R, R1, R2, R3, R4, R5, R6, OPCODE, KIND, IMMEDIATES)                                       \
  GEMM_WGMMA_STATEMENT(N, R, R2, OPCODE, "%" #R ", %" #R1 ", accumulate" IMMEDIATES, KIND, "l"(a), "l"(b), "r"(scale_d))
#define GEMM_WGMMA_RS(N, R, R1, R2, R3, R4, R5, R6, OPCODE, KIND, IMMEDIATES)                                       \
  GEMM_WGMMA_STATEMENT(N, R, R5, OPCODE,                                                                           \
                       "{%" #R ", %" #R1 ", %" #R2 ", %" #R3 "}, %" #R4 ", accumulate" IMMEDIATES, KIND,            \
                       "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(scale_d))

/// The same in 16 bits with tnspA and tnspB from template arguments.
#define GEMM_WGMMA_SS_TRANSPOSED(N, R, R1, R2, R3, R4, R5, R6, OPCODE)                                              \
  GEMM_WGMMA_STATEMENT(N, R, R2, OPCODE, "%" #R ", %" #R1 ", accumulate, 1, 1, %" #R3 ", %" #R4, "+f",              \
                       "l"(a), "l"(b), "r"(scale_d), "n"(kTnspA), "n"(kTnspB))
#define GEMM_WGMMA_RS_TRANSPOSED(N, R, R1, R2, R3, R4, R5, R6, OPCODE)                                              \
  GEMM_WGMMA_STATEMENT(N, R, R5, OPCODE,                                                                           \
                       "{%" #R ", %" #R1 ", %" #R2 ", %" #R3 "}, %" #R4 ", accumulate, 1, 1, %" #R6, "+f",          \
                       "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(scale_d), "n"(kTnspB))

/// The widths, each with N / 2 and the six numbers after it; accumulators in integers leave some out.
#define GEMM_WGMMA_EACH_WIDTH(STATEMENT, ...) \
  GEMM_WGMMA_EACH_INTEGER_WIDTH(STATEMENT, __VA_ARGS__) \
  STATEMENT(40, 20, 21, 22, 23, 24, 25, 26, __VA_ARGS__) \
  STATEMENT(56, 28, 29, 30, 31, 32, 33, 34, __VA_ARGS__) \
  STATEMENT(72, 36, 37, 38, 39, 40, 41, 42, __VA_ARGS__) \
  STATEMENT(88, 44, 45, 46, 47, 48, 49, 50, __VA_ARGS__) \
  STATEMENT(104, 52, 53, 54, 55, 56, 57, 58, __VA_ARGS__) \
  STATEMENT(120, 60, 61, 62, 63, 64, 65, 66, __VA_ARGS__) \
  STATEMENT(136, 68, 69, 70, 71, 72, 73, 74, __VA_ARGS__) \
  STATEMENT(152, 76, 77, 78, 79, 80, 81, 82, __VA_ARGS__) \
  STATEMENT(168, 84, 85, 86, 87, 88, 89, 90, __VA_ARGS__) \
  STATEMENT(184, 92, 93, 94, 95, 96, 97, 98, __VA_ARGS__) \
  STATEMENT(200, 100, 101, 102, 103, 104, 105, 106, __VA_ARGS__) \
  STATEMENT(216, 108, 109, 110, 111, 112, 113, 114, __VA_ARGS__) \
  STATEMENT(232, 116, 117, 118, 119, 120, 121, 122, __VA_ARGS__) \
  STATEMENT(248, 124, 125, 126, 127, 128, 129, 130, __VA_ARGS__)
#define GEMM_WGMMA_EACH_INTEGER_WIDTH(STATEMENT, ...) \
  STATEMENT(8, 4, 5, 6, 7, 8, 9, 10, __VA_ARGS__) \
  STATEMENT(16, 8, 9, 10, 11, 12, 13, 14, __VA_ARGS__) \
  STATEMENT(24, 12, 13, 14, 15, 16, 17, 18, __VA_ARGS__) \
  STATEMENT(32, 16, 17, 18, 19, 20, 21, 22, __VA_ARGS__) \
  STATEMENT(48, 24, 25, 26, 27, 28, 29, 30, __VA_ARGS__) \
  STATEMENT(64, 32, 33, 34, 35, 36, 37, 38, __VA_ARGS__) \
  STATEMENT(80, 40, 41, 42, 43, 44, 45, 46, __VA_ARGS__) \
  STATEMENT(96, 48, 49, 50, 51, 52, 53, 54, __VA_ARGS__) \
  STATEMENT(112, 56, 57, 58, 59, 60, 61, 62, __VA_ARGS__) \
  STATEMENT(128, 64, 65, 66, 67, 68, 69, 70, __VA_ARGS__) \
  STATEMENT(144, 72, 73, 74, 75, 76, 77, 78, __VA_ARGS__) \
  STATEMENT(160, 80, 81, 82, 83, 84, 85, 86, __VA_ARGS__) \
  STATEMENT(176, 88, 89, 90, 91, 92, 93, 94, __VA_ARGS__) \
  STATEMENT(192, 96, 97, 98, 99, 100, 101, 102, __VA_ARGS__) \
  STATEMENT(208, 104, 105, 106, 107, 108, 109, 110, __VA_ARGS__) \
  STATEMENT(224, 112, 113, 114, 115, 116, 117, 118, __VA_ARGS__) \
  STATEMENT(240, 120, 121, 122, 123, 124, 125, 126, __VA_ARGS__) \
  STATEMENT(256, 128, 129, 130, 131, 132, 133, 134, __VA_ARGS__)

// %0 to %(N / 2 - 1), and the registers themselves.
#define GEMM_WGMMA_REGISTERS_4 "%0, %1, %2, %3"
#define GEMM_WGMMA_REGISTERS_8 GEMM_WGMMA_REGISTERS_4 ", %4, %5, %6, %7"
#define GEMM_WGMMA_REGISTERS_12 GEMM_WGMMA_REGISTERS_8 ", %8, %9, %10, %11"
#define GEMM_WGMMA_REGISTERS_16 GEMM_WGMMA_REGISTERS_12 ", %12, %13, %14, %15"
#define GEMM_WGMMA_REGISTERS_20 GEMM_WGMMA_REGISTERS_16 ", %16, %17, %18, %19"
#define GEMM_WGMMA_REGISTERS_24 GEMM_WGMMA_REGISTERS_20 ", %20, %21, %22, %23"
#define GEMM_WGMMA_REGISTERS_28 GEMM_WGMMA_REGISTERS_24 ", %24, %25, %26, %27"
#define GEMM_WGMMA_REGISTERS_32 GEMM_WGMMA_REGISTERS_28 ", %28, %29, %30, %31"
#define GEMM_WGMMA_REGISTERS_36 GEMM_WGMMA_REGISTERS_32 ", %32, %33, %34, %35"
#define GEMM_WGMMA_REGISTERS_40 GEMM_WGMMA_REGISTERS_36 ", %36, %37, %38, %39"
#define GEMM_WGMMA_REGISTERS_44 GEMM_WGMMA_REGISTERS_40 ", %40, %41, %42, %43"
#define GEMM_WGMMA_REGISTERS_48 GEMM_WGMMA_REGISTERS_44 ", %44, %45, %46, %47"
#define GEMM_WGMMA_REGISTERS_52 GEMM_WGMMA_REGISTERS_48 ", %48, %49, %50, %51"
#define GEMM_WGMMA_REGISTERS_56 GEMM_WGMMA_REGISTERS_52 ", %52, %53, %54, %55"
#define GEMM_WGMMA_REGISTERS_60 GEMM_WGMMA_REGISTERS_56 ", %56, %57, %58, %59"
#define GEMM_WGMMA_REGISTERS_64 GEMM_WGMMA_REGISTERS_60 ", %60, %61, %62, %63"
#define GEMM_WGMMA_REGISTERS_68 GEMM_WGMMA_REGISTERS_64 ", %64, %65, %66, %67"
#define GEMM_WGMMA_REGISTERS_72 GEMM_WGMMA_REGISTERS_68 ", %68, %69, %70, %71"
#define GEMM_WGMMA_REGISTERS_76 GEMM_WGMMA_REGISTERS_72 ", %72, %73, %74, %75"
#define GEMM_WGMMA_REGISTERS_80 GEMM_WGMMA_REGISTERS_76 ", %76, %77, %78, %79"
#define GEMM_WGMMA_REGISTERS_84 GEMM_WGMMA_REGISTERS_80 ", %80, %81, %82, %83"
#define GEMM_WGMMA_REGISTERS_88 GEMM_WGMMA_REGISTERS_84 ", %84, %85, %86, %87"
#define GEMM_WGMMA_REGISTERS_92 GEMM_WGMMA_REGISTERS_88 ", %88, %89, %90, %91"
#define GEMM_WGMMA_REGISTERS_96 GEMM_WGMMA_REGISTERS_92 ", %92, %93, %94, %95"
#define GEMM_WGMMA_REGISTERS_100 GEMM_WGMMA_REGISTERS_96 ", %96, %97, %98, %99"
#define GEMM_WGMMA_REGISTERS_104 GEMM_WGMMA_REGISTERS_100 ", %100, %101, %102, %103"
#define GEMM_WGMMA_REGISTERS_108 GEMM_WGMMA_REGISTERS_104 ", %104, %105, %106, %107"
#define GEMM_WGMMA_REGISTERS_112 GEMM_WGMMA_REGISTERS_108 ", %108, %109, %110, %111"
#define GEMM_WGMMA_REGISTERS_116 GEMM_WGMMA_REGISTERS_112 ", %112, %113, %114, %115"
#define GEMM_WGMMA_REGISTERS_120 GEMM_WGMMA_REGISTERS_116 ", %116, %117, %118, %119"
#define GEMM_WGMMA_REGISTERS_124 GEMM_WGMMA_REGISTERS_120 ", %120, %121, %122, %123"
#define GEMM_WGMMA_REGISTERS_128 GEMM_WGMMA_REGISTERS_124 ", %124, %125, %126, %127"

#define GEMM_WGMMA_ACCUMULATOR_4(KIND) KIND(d[0]), KIND(d[1]), KIND(d[2]), KIND(d[3])
#define GEMM_WGMMA_ACCUMULATOR_8(KIND) \
  GEMM_WGMMA_ACCUMULATOR_4(KIND), KIND(d[4]), KIND(d[5]), KIND(d[6]), KIND(d[7])
#define GEMM_WGMMA_ACCUMULATOR_12(KIND) \
  GEMM_WGMMA_ACCUMULATOR_8(KIND), KIND(d[8]), KIND(d[9]), KIND(d[10]), KIND(d[11])
#define GEMM_WGMMA_ACCUMULATOR_16(KIND) \
  GEMM_WGMMA_ACCUMULATOR_12(KIND), KIND(d[12]), KIND(d[13]), KIND(d[14]), KIND(d[15])
#define GEMM_WGMMA_ACCUMULATOR_20(KIND) \
  GEMM_WGMMA_ACCUMULATOR_16(KIND), KIND(d[16]), KIND(d[17]), KIND(d[18]), KIND(d[19])
#define GEMM_WGMMA_ACCUMULATOR_24(KIND) \
  GEMM_WGMMA_ACCUMULATOR_20(KIND), KIND(d[20]), KIND(d[21]), KIND(d[22]), KIND(d[23])
#define GEMM_WGMMA_ACCUMULATOR_28(KIND) \
  GEMM_WGMMA_ACCUMULATOR_24(KIND), KIND(d[24]), KIND(d[25]), KIND(d[26]), KIND(d[27])
#define GEMM_WGMMA_ACCUMULATOR_32(KIND) \
  GEMM_WGMMA_ACCUMULATOR_28(KIND), KIND(d[28]), KIND(d[29]), KIND(d[30]), KIND(d[31])
#define GEMM_WGMMA_ACCUMULATOR_36(KIND) \
  GEMM_WGMMA_ACCUMULATOR_32(KIND), KIND(d[32]), KIND(d[33]), KIND(d[34]), KIND(d[35])
#define GEMM_WGMMA_ACCUMULATOR_40(KIND) \
  GEMM_WGMMA_ACCUMULATOR_36(KIND), KIND(d[36]), KIND(d[37]), KIND(d[38]), KIND(d[39])
#define GEMM_WGMMA_ACCUMULATOR_44(KIND) \
  GEMM_WGMMA_ACCUMULATOR_40(KIND), KIND(d[40]), KIND(d[41]), KIND(d[42]), KIND(d[43])
#define GEMM_WGMMA_ACCUMULATOR_48(KIND) \
  GEMM_WGMMA_ACCUMULATOR_44(KIND), KIND(d[44]), KIND(d[45]), KIND(d[46]), KIND(d[47])
#define GEMM_WGMMA_ACCUMULATOR_52(KIND) \
  GEMM_WGMMA_ACCUMULATOR_48(KIND), KIND(d[48]), KIND(d[49]), KIND(d[50]), KIND(d[51])
#define GEMM_WGMMA_ACCUMULATOR_56(KIND) \
  GEMM_WGMMA_ACCUMULATOR_52(KIND), KIND(d[52]), KIND(d[53]), KIND(d[54]), KIND(d[55])
#define GEMM_WGMMA_ACCUMULATOR_60(KIND) \
  GEMM_WGMMA_ACCUMULATOR_56(KIND), KIND(d[56]), KIND(d[57]), KIND(d[58]), KIND(d[59])
#define GEMM_WGMMA_ACCUMULATOR_64(KIND) \
  GEMM_WGMMA_ACCUMULATOR_60(KIND), KIND(d[60]), KIND(d[61]), KIND(d[62]), KIND(d[63])
#define GEMM_WGMMA_ACCUMULATOR_68(KIND) \
  GEMM_WGMMA_ACCUMULATOR_64(KIND), KIND(d[64]), KIND(d[65]), KIND(d[66]), KIND(d[67])
#define GEMM_WGMMA_ACCUMULATOR_72(KIND) \
  GEMM_WGMMA_ACCUMULATOR_68(KIND), KIND(d[68]), KIND(d[69]), KIND(d[70]), KIND(d[71])
#define GEMM_WGMMA_ACCUMULATOR_76(KIND) \
  GEMM_WGMMA_ACCUMULATOR_72(KIND), KIND(d[72]), KIND(d[73]), KIND(d[74]), KIND(d[75])
#define GEMM_WGMMA_ACCUMULATOR_80(KIND) \
  GEMM_WGMMA_ACCUMULATOR_76(KIND), KIND(d[76]), KIND(d[77]), KIND(d[78]), KIND(d[79])
#define GEMM_WGMMA_ACCUMULATOR_84(KIND) \
  GEMM_WGMMA_ACCUMULATOR_80(KIND), KIND(d[80]), KIND(d[81]), KIND(d[82]), KIND(d[83])
#define GEMM_WGMMA_ACCUMULATOR_88(KIND) \
  GEMM_WGMMA_ACCUMULATOR_84(KIND), KIND(d[84]), KIND(d[85]), KIND(d[86]), KIND(d[87])
#define GEMM_WGMMA_ACCUMULATOR_92(KIND) \
  GEMM_WGMMA_ACCUMULATOR_88(KIND), KIND(d[88]), KIND(d[89]), KIND(d[90]), KIND(d[91])
#define GEMM_WGMMA_ACCUMULATOR_96(KIND) \
  GEMM_WGMMA_ACCUMULATOR_92(KIND), KIND(d[92]), KIND(d[93]), KIND(d[94]), KIND(d[95])
#define GEMM_WGMMA_ACCUMULATOR_100(KIND) \
  GEMM_WGMMA_ACCUMULATOR_96(KIND), KIND(d[96]), KIND(d[97]), KIND(d[98]), KIND(d[99])
#define GEMM_WGMMA_ACCUMULATOR_104(KIND) \
  GEMM_WGMMA_ACCUMULATOR_100(KIND), KIND(d[100]), KIND(d[101]), KIND(d[102]), KIND(d[103])
#define GEMM_WGMMA_ACCUMULATOR_108(KIND) \
  GEMM_WGMMA_ACCUMULATOR_104(KIND), KIND(d[104]), KIND(d[105]), KIND(d[106]), KIND(d[107])
#define GEMM_WGMMA_ACCUMULATOR_112(KIND) \
  GEMM_WGMMA_ACCUMULATOR_108(KIND), KIND(d[108]), KIND(d[109]), KIND(d[110]), KIND(d[111])
#define GEMM_WGMMA_ACCUMULATOR_116(KIND) \
  GEMM_WGMMA_ACCUMULATOR_112(KIND), KIND(d[112]), KIND(d[113]), KIND(d[114]), KIND(d[115])
#define GEMM_WGMMA_ACCUMULATOR_120(KIND) \
  GEMM_WGMMA_ACCUMULATOR_116(KIND), KIND(d[116]), KIND(d[117]), KIND(d[118]), KIND(d[119])
#define GEMM_WGMMA_ACCUMULATOR_124(KIND) \
  GEMM_WGMMA_ACCUMULATOR_120(KIND), KIND(d[120]), KIND(d[121]), KIND(d[122]), KIND(d[123])
#define GEMM_WGMMA_ACCUMULATOR_128(KIND) \
  GEMM_WGMMA_ACCUMULATOR_124(KIND), KIND(d[124]), KIND(d[125]), KIND(d[126]), KIND(d[127])
// clang-format on
