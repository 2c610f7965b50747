// Tensor memory of Blackwell: a map of its columns and lanes, and the descriptors of tcgen05.mma bit by bit.
#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "harness/backend/backend.h"
#include "ptx/tcgen05_descriptor.h"
#include "ptx/tcgen05_scaled_descriptor.h"

namespace play {
namespace {

namespace ptx = gemm::ptx;

constexpr const char* kTensorMemoryFooter =
    R"(An SM of compute capability 10.0 has 512 columns of 128 lanes of 32 bits. Row i of an accumulator of 128 rows is
lane i, and column j is one column. Warp w can access lane 32 (w mod 4) and the 31 lanes after it. PTX ISA, "Tensor Memory".

Without arguments, the command draws a map. Nothing here needs a GPU.

  tools/play tensor_memory map 256,128,128      # three allocations, one after the other
  tools/play tensor_memory map 256 --m 64       # an accumulator of 64 rows
  tools/play tensor_memory decode 0x08200490    # an instruction descriptor: up to 8 digits
  tools/play tensor_memory decode 0x4000404000010040   # a descriptor of a tile: more than 8 digits
  tools/play tensor_memory scales 77            # where the scales of row 77 lie, of .kind::mxf8f6f4
  tools/play tensor_memory scales 77 --kind mxf4nvf4   # 16 elements share a scale
  tools/play tensor_memory decode 0x08a00000 --kind mxf8f6f4   # the descriptor of a block-scaled multiplication
  tools/play tensor_memory encode --m 128 --n 256
  tools/play tensor_memory encode --m 256 --n 256      # for a pair of CTAs)";

constexpr std::uint32_t kColumns = 512;

void bits_line(Output& output, const char* where, const char* name, std::uint64_t value,
               const std::string& meaning) {
  output.text += fmt::format("  bits {}  {:<14}  {:#06x}  {}\n", where, name, value, meaning);
}

const char* input_name(std::uint32_t code) {
  return code == 0 ? "f16" : code == 1 ? "bf16" : "none of .kind::f16";
}

/// Prints the fields; returns whether nothing is wrong with them.
bool show_instruction(std::uint32_t bits, Output& output) {
  const auto field = [&](int first, std::uint32_t mask) { return bits >> first & mask; };
  output.text += fmt::format("{:#010x}\n", bits);
  bits_line(output, " 4-5 ", "type of D", field(4, 3),
            field(4, 3) == 1   ? "f32"
            : field(4, 3) == 0 ? "f16"
                               : "none");
  bits_line(output, " 7-9 ", "type of A", field(7, 7), input_name(field(7, 7)));
  bits_line(output, "10-12", "type of B", field(10, 7), input_name(field(10, 7)));
  bits_line(output, "13-14", "negate", field(13, 3),
            field(13, 3) == 0 ? "neither" : "A is bit 13, B is bit 14");
  bits_line(output, "15-16", "transpose", field(15, 3),
            field(15, 3) == 0 ? "A and B are K-major" : "A is bit 15, B is bit 16: MN-major");
  bits_line(output, "17-22", "N / 8", field(17, 63), fmt::format("N = {}", field(17, 63) * 8));
  bits_line(output, "24-28", "M / 16", field(24, 31), fmt::format("M = {}", field(24, 31) * 16));
  const bool is_pairs = field(24, 31) * 16 == 256;
  const char* const fault = ptx::instruction_descriptor_fault(bits, is_pairs ? 2 : 1);
  output.text += fault != nullptr ? fmt::format("wrong: {}\n", fault)
                 : is_pairs       ? std::string("nothing is wrong for a pair of CTAs (cta_group::2)\n")
                                  : std::string("nothing is wrong\n");
  return fault == nullptr;
}

/// Prints the fields of a block-scaled instruction; returns whether nothing is wrong with them.
bool show_scaled_instruction(ptx::ScaledKind kind, std::uint32_t bits, Output& output) {
  constexpr const char* kNames[] = {"e4m3", "e5m2", "none", "e2m3", "e3m2", "e2m1", "none", "none"};
  const auto field = [&](int first, std::uint32_t mask) { return bits >> first & mask; };
  const auto type = [&](std::uint32_t code) {
    return kind == ptx::ScaledKind::kMxf8f6f4 ? kNames[code] : code == 1 ? "e2m1" : "none";
  };
  output.text += fmt::format("{:#010x}\n", bits);
  bits_line(output, " 4-5 ", "ID of B", field(4, 3),
            fmt::format("scales from byte {} of a word on", field(4, 3)));
  bits_line(output, " 7-9 ", "type of A", field(7, 7), type(field(7, 7)));
  bits_line(output, "10-12", "type of B", field(10, 7), type(field(10, 7)));
  bits_line(output, "13-14", "negate", field(13, 3),
            field(13, 3) == 0 ? "neither" : "A is bit 13, B is bit 14");
  bits_line(output, "15-16", "transpose", field(15, 3),
            field(15, 3) == 0 ? "A and B are K-major" : "A is bit 15, B is bit 16: MN-major");
  bits_line(output, "17-22", "N / 8", field(17, 63), fmt::format("N = {}", field(17, 63) * 8));
  bits_line(output, "23   ", "type of scales", field(23, 1), field(23, 1) == 0 ? "ue4m3" : "ue8m0");
  bits_line(output, "27-28", "M / 128", field(27, 3), fmt::format("M = {}", field(27, 3) * 128));
  bits_line(output, "29-30", "ID of A", field(29, 3),
            fmt::format("scales from byte {} of a word on", field(29, 3)));
  const char* const fault = ptx::scaled_instruction_fault(kind, bits, field(27, 3) == 2 ? 2 : 1);
  output.text += fault == nullptr ? std::string("nothing is wrong\n") : fmt::format("wrong: {}\n", fault);
  return fault == nullptr;
}

/// Where the scales of a row lie in a piece of 512 bytes and, behind tcgen05.cp, in tensor memory.
void show_scales(ptx::ScaledKind kind, int row, Output& output) {
  constexpr int kLanes = 32;
  constexpr int kBlocks = 4;  // in a word
  constexpr int kRows = 128;  // in a piece
  const int lane = row % kLanes;
  const int column = row % kRows / kLanes;
  output.text += fmt::format(
      "A piece of 512 bytes holds the scales of {} rows and {} blocks of {} elements of K. It is 32 rows of "
      "16\n"
      "bytes; tcgen05.cp.32x128b.warpx4 copies them to 4 columns, and all quarters of the lanes get the "
      "same.\n\n"
      "                column 0   column 1   column 2   column 3\n",
      kRows, kBlocks, ptx::scale_block(kind));
  for (int i = 0; i < kLanes; ++i) {
    if (i != 0 && i != kLanes - 1 && i != lane) continue;
    output.text += fmt::format("  lane {:>3}   ", i);
    for (int j = 0; j < kBlocks; ++j) {
      const int of = row / kRows * kRows + j * kLanes + i;
      output.text += fmt::format("{}row {:<4}{} ", of == row ? '[' : ' ', of, of == row ? ']' : ' ');
    }
    while (output.text.back() == ' ') output.text.pop_back();
    output.text += '\n';
  }
  output.text += fmt::format("\nrow {}: piece {} along the rows, lanes {}, {}, {} and {}, column {}\n", row,
                             row / kRows, lane, lane + 32, lane + 64, lane + 96, column);
  const int vector = ptx::scale_vector(kind);
  for (int first = 0; first < kBlocks; first += vector) {
    const int begin = first * ptx::scale_block(kind);
    output.text += fmt::format(
        "  elements {:>3}-{:<3}  one instruction, scale factor ID {}: {} of the word, from byte {} of the "
        "piece "
        "on\n",
        begin, begin + ptx::scaled_depth(kind) - 1, first,
        vector == 1 ? fmt::format("byte {}", first) : fmt::format("bytes {}-{}", first, first + vector - 1),
        ptx::scale_offset(row, first));
  }
}

ptx::ScaledKind parse_kind(const std::string& name) {
  if (name == "mxf8f6f4") return ptx::ScaledKind::kMxf8f6f4;
  if (name == "mxf4") return ptx::ScaledKind::kMxf4;
  if (name == "mxf4nvf4") return ptx::ScaledKind::kMxf4Nvf4x4;
  throw harness::Error(
      fmt::format("--kind is '{}'; a kind with block scales is mxf8f6f4, mxf4 or mxf4nvf4 (with "
                  ".scale_vec::4X)",
                  name));
}

bool show_tile(std::uint64_t bits, Output& output) {
  const ptx::MatrixDescriptor d = ptx::tcgen05_decode(bits);
  output.text += fmt::format("{:#018x}\n", bits);
  bits_line(output, " 0-13", "address", bits & 0x3fff,
            fmt::format("x 16 = byte {:#x} of shared memory", d.address));
  bits_line(output, "16-29", "leading offset", bits >> 16 & 0x3fff,
            fmt::format("x 16 = {} bytes", d.leading_bytes));
  bits_line(output, "32-45", "stride", bits >> 32 & 0x3fff,
            fmt::format("x 16 = {} bytes from 8 rows to the next 8", d.stride_bytes));
  bits_line(output, "46-48", "constant", bits >> 46 & 7, "must be 1, but wgmma's descriptor has 0 here");
  bits_line(output, "49-51", "base offset", bits >> 49 & 7,
            fmt::format("x 128 = {} bytes", d.base_offset * 128));
  bits_line(output, "52   ", "leading is", bits >> 52 & 1,
            (bits >> 52 & 1) == 0 ? "an offset" : "an address");
  bits_line(output, "61-63", "swizzle", bits >> 61,
            bits >> 61 == 1 ? "128 bytes in units of 32" : swizzle_name(d.swizzle));
  const char* const fault = ptx::tcgen05_descriptor_fault(bits);
  output.text += fault == nullptr ? std::string("nothing is wrong\n") : fmt::format("wrong: {}\n", fault);
  return fault == nullptr;
}

/// The columns that allocations of these sizes take, each at the first free multiple of its size. `all` gets
/// them, too.
bool show_map(const std::vector<std::uint32_t>& sizes, std::uint32_t m, nlohmann::ordered_json& all,
              Output& output) {
  std::uint32_t next = 0;
  std::uint32_t before = kColumns;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint32_t size = sizes[i];
    if (size < 32 || size > kColumns || !std::has_single_bit(size)) {
      output.text += fmt::format(
          "wrong: an allocation of {} columns; the number must be a power of 2 from 32 to 512\n", size);
      return false;
    }
    if (size > before) {
      output.text += fmt::format(
          "wrong: an allocation of {} columns after one of {}; a CTA's allocations must not grow\n", size,
          before);
      return false;
    }
    before = size;
    if (next + size > kColumns) {
      output.text += fmt::format("allocation {} of {} columns waits: {} of 512 are taken\n", i, size, next);
      return true;
    }
    output.text +=
        fmt::format("allocation {}: columns {}-{}, address {:#010x}\n", i, next, next + size - 1, next);
    nlohmann::ordered_json warps = nlohmann::ordered_json::array();
    for (std::uint32_t warp = 0; warp < 4; ++warp) {
      const std::uint32_t first = warp * 32;
      const std::uint32_t row = m == 64 ? warp * 16 : first;
      const std::uint32_t last = row + (m == 64 ? 15 : 31);
      output.text +=
          fmt::format("  warp {}: lanes {:>3}-{:<3}  rows {:>3}-{:<3}  address {:#010x}\n", warp, first,
                      first + (m == 64 ? 15 : 31), row, last, ptx::tensor_memory_address(next, first, 0));
      warps.push_back({{"lanes", {first, first + last - row}},
                       {"rows", {row, last}},
                       {"address", ptx::tensor_memory_address(next, first, 0)}});
    }
    all.push_back({{"columns", {next, next + size - 1}}, {"warps", warps}});
    next += size;
  }
  output.text += fmt::format("{} of 512 columns are free\n", kColumns - next);
  return true;
}

}  // namespace

int tensor_memory(const std::vector<std::string>& arguments, Output& output) {
  if (arguments.empty()) return example("tensor_memory", tensor_memory, "map 256,128,128", output);
  CLI::App app{"Maps tensor memory, and decodes and encodes the descriptors of tcgen05.mma.",
               "tools/play tensor_memory"};
  app.require_subcommand(1);
  app.footer(kTensorMemoryFooter);
  CLI::App* map =
      app.add_subcommand("map", "Show where allocations lie, and which lanes each warp can access");
  std::string sizes_text;
  std::string map_m = "128";
  map->add_option("columns", sizes_text, "Sizes of allocations, separated by commas")->required();
  map->add_option("--m", map_m, "Number of rows of the accumulator: 64 or 128")->capture_default_str();
  std::string json;
  map->add_option("--json", json, "Write the map to this file instead");
  CLI::App* decode = app.add_subcommand("decode", "Decode 32 bits (an instruction) or 64 bits (a tile)");
  std::string bits_text;
  decode->add_option("bits", bits_text, "0x...")->required();
  std::string decode_kind;
  decode->add_option("--kind", decode_kind, "Of a block-scaled instruction: mxf8f6f4, mxf4 or mxf4nvf4");
  CLI::App* scales = app.add_subcommand("scales", "Show where the scales of a row lie in tensor memory");
  std::string row_text;
  std::string kind = "mxf8f6f4";
  scales->add_option("row", row_text, "A row of A or of B")->required();
  scales->add_option("--kind", kind, "mxf8f6f4, mxf4 or mxf4nvf4")->capture_default_str();
  CLI::App* encode =
      app.add_subcommand("encode", "Encode the instruction descriptor of a bf16 multiplication");
  std::string m = "128";
  std::string n = "128";
  encode->add_option("--m", m, "Rows of D")->capture_default_str();
  encode->add_option("--n", n, "Columns of D")->capture_default_str();
  return run(app, arguments, output, [&] {
    bool right = true;
    if (map->parsed()) {
      std::vector<std::uint32_t> sizes;
      for (const std::string& size : split(sizes_text, ','))
        sizes.push_back(static_cast<std::uint32_t>(parse_number("an allocation", size, 100000)));
      const std::uint64_t rows = parse_number("--m", map_m, 256);
      if (rows != 64 && rows != 128)
        throw harness::Error(fmt::format("--m is {}; an accumulator of one CTA has 64 or 128 rows", rows));
      nlohmann::ordered_json all = nlohmann::ordered_json::array();
      right = show_map(sizes, static_cast<std::uint32_t>(rows), all, output);
      if (right && !json.empty()) {
        write_file(json, nlohmann::ordered_json{{"allocations", all}}.dump() + "\n");
        output.text = fmt::format("the map of {} allocations is in {}\n", all.size(), json);
      }
    } else if (decode->parsed()) {
      const bool prefixed = bits_text.rfind("0x", 0) == 0 || bits_text.rfind("0X", 0) == 0;
      const std::string digits = bits_text.substr(prefixed ? 2 : 0);
      if (digits.empty() || digits.size() > 16 ||
          digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
        throw harness::Error(
            fmt::format("the descriptor is '{}'; it must be 1 to 8 hexadecimal digits for an instruction, 9 "
                        "to 16 for a tile",
                        bits_text));
      }
      const std::uint64_t bits = parse_number("the descriptor", "0x" + digits, ~std::uint64_t{0});
      if (!decode_kind.empty() && digits.size() > 8)
        throw harness::Error("--kind is for the descriptor of an instruction, which has at most 8 digits");
      right = !decode_kind.empty()
                  ? show_scaled_instruction(parse_kind(decode_kind), static_cast<std::uint32_t>(bits), output)
              : digits.size() > 8 ? show_tile(bits, output)
                                  : show_instruction(static_cast<std::uint32_t>(bits), output);
    } else if (scales->parsed()) {
      show_scales(parse_kind(kind), static_cast<int>(parse_number("the row", row_text, 1 << 20)), output);
    } else {
      const ptx::InstructionDescriptor shape{.m = static_cast<std::uint32_t>(parse_number("--m", m, 496)),
                                             .n = static_cast<std::uint32_t>(parse_number("--n", n, 504))};
      if (shape.m % 16 != 0 || shape.n % 8 != 0)
        throw harness::Error(
            fmt::format("M is {} and N is {}; M must be a multiple of 16 and N a multiple of 8, because the "
                        "descriptor counts in these units",
                        shape.m, shape.n));
      right = show_instruction(ptx::encode(shape), output);
    }
    return right ? harness::kExitOk : harness::kExitMismatch;
  });
}

}  // namespace play
