// A wgmma descriptor, field by field, from its bits or into them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "descriptor_rules.h"
#include "harness/backend/backend.h"

namespace play {
namespace {

namespace ptx = gemm::ptx;

constexpr const char* kDescriptorFooter =
    R"(wgmma reads its operands from shared memory, and a descriptor of 64 bits tells it where and how:

  bits  0-13  address of the first element, in units of 16 bytes
  bits 16-29  leading offset: without a swizzle, from 8 elements of K to the next 8; with one, ignored along K
  bits 32-45  stride: from 8 rows to the next 8
  bits 49-51  base offset, 0 for a tile that starts the swizzle's pattern
  bits 62-63  swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes

(PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout: Matrix Descriptor Format". Blackwell's
tcgen05 has another layout with the same name.) Operands here are bf16 and K-major, as in all steps.

Without arguments, the command encodes an example.

  tools/play descriptor decode 0x4000004000010040
  tools/play descriptor encode --address 0x400 --swizzle 128        # leading offset and stride of a dense tile
  tools/play descriptor encode --address 0x420 --swizzle 128        # 16 elements further along K
  tools/play descriptor encode --address 0x480 --swizzle 128        # one row further: is that meant?
  tools/play descriptor encode --address 0x470                      # 16 bytes before the row's end: wrong
  tools/play descriptor encode --address 0 --swizzle 64 --stride 1024 --rows 128
  tools/play descriptor encode --address 0x420 --json fields.json   # the same as JSON)";

constexpr std::uint64_t kMaxField = (1u << 18) - 16;

struct Field {
  int low;
  int high;
  const char* name;
  std::uint64_t value;
  std::string meaning;
};

std::vector<Field> fields(std::uint64_t bits) {
  const ptx::MatrixDescriptor d = ptx::decode(bits);
  const bool swizzled = d.swizzle != ptx::Swizzle::kNone;
  return {{0, 13, "address", bits & 0x3fff, fmt::format("x 16 = byte {:#x} of shared memory", d.address)},
          {16, 29, "leading offset", bits >> 16 & 0x3fff,
           fmt::format("x 16 = {} bytes{}", d.leading_bytes,
                       swizzled ? ", ignored: a row of K is one swizzle span"
                                : " from 8 elements of K to the next 8")},
          {32, 45, "stride", bits >> 32 & 0x3fff,
           fmt::format("x 16 = {} bytes from 8 rows to the next 8", d.stride_bytes)},
          {49, 51, "base offset", bits >> 49 & 7,
           fmt::format("the swizzle's pattern begins {} bytes past a multiple of its length",
                       d.base_offset * 128)},
          {62, 63, "swizzle", bits >> 62, swizzle_name(d.swizzle)}};
}

std::string file_text(std::uint64_t bits, std::uint32_t rows) {
  using Json = nlohmann::ordered_json;
  const ptx::MatrixDescriptor d = ptx::decode(bits);
  Json file{
      {"descriptor", fmt::format("{:#018x}", bits)}, {"fields", Json::array()}, {"rows", Json::array()}};
  for (const Field& field : fields(bits)) {
    file["fields"].push_back({{"low", field.low},
                              {"high", field.high},
                              {"name", field.name},
                              {"value", field.value},
                              {"meaning", field.meaning}});
  }
  // Where the two groups of 8 elements of each row begin.
  for (std::uint32_t row = 0; row < rows; ++row)
    file["rows"].push_back({operand_address(d, row, 0), operand_address(d, row, 1)});
  const DescriptorFindings findings = examine_descriptor(bits, rows);
  file["notes"] = findings.notes;
  file["unusual"] = findings.odd;
  file["wrong"] = findings.wrong;
  return file.dump() + '\n';
}

/// Prints the fields of `bits`; returns whether nothing is wrong with them.
bool show(std::uint64_t bits, std::uint32_t rows, Output& output) {
  const ptx::MatrixDescriptor d = ptx::decode(bits);
  output.text += fmt::format("{:#018x}\n", bits);
  for (const auto& [low, high, name, value, meaning] : fields(bits))
    output.text += fmt::format("  bits {:>2}-{}  {:<14}  {:#06x}  {}\n", low, high, name, value, meaning);

  output.text += fmt::format("as {} rows of 16 bf16 along K:\n", rows);
  for (const std::uint32_t row : {0u, 1u, 7u, 8u, rows - 1}) {
    if (row >= rows || (row == rows - 1 && row <= 8 && row != 0)) continue;
    output.text += fmt::format("  row {:>3}  k 0-7 at {:#07x}  k 8-15 at {:#07x}\n", row,
                               operand_address(d, row, 0), operand_address(d, row, 1));
  }
  const DescriptorFindings findings = examine_descriptor(bits, rows);
  for (const std::string& note : findings.notes) output.text += "note: " + note + '\n';
  for (const std::string& odd : findings.odd) output.text += "unusual: " + odd + '\n';
  for (const std::string& wrong : findings.wrong) output.text += "wrong: " + wrong + '\n';
  if (findings.odd.empty() && findings.wrong.empty()) output.text += "nothing is wrong\n";
  return findings.wrong.empty();
}

/// A field in bytes that the descriptor can hold.
std::uint32_t parse_field(const std::string& name, const std::string& text) {
  const std::uint64_t value = parse_number(name, text, kMaxField);
  if (value % 16 != 0)
    throw harness::Error(fmt::format(
        "{} is {}; the descriptor counts units of 16 bytes, so it must be a multiple of 16", name, value));
  return static_cast<std::uint32_t>(value);
}

}  // namespace

int descriptor(const std::vector<std::string>& arguments, Output& output) {
  if (arguments.empty())
    return example("descriptor", descriptor, "encode --address 0x420 --swizzle 128", output);
  CLI::App app{"Decodes and encodes wgmma's descriptors, and says what is wrong with them.",
               "tools/play descriptor"};
  app.require_subcommand(1);
  app.footer(kDescriptorFooter);
  std::string rows_text = "64";
  CLI::App* decode = app.add_subcommand("decode", "Decode 64 bits in hexadecimal");
  std::string bits_text;
  decode->add_option("bits", bits_text, "0x...")->required();
  CLI::App* encode = app.add_subcommand("encode", "Encode the fields, which are in bytes");
  std::string address = "0";
  std::string swizzle = "128";
  std::string leading;
  std::string stride;
  std::string base_offset = "0";
  encode->add_option("--address", address, "Address of the first element in shared memory")
      ->capture_default_str();
  encode->add_option("--swizzle", swizzle, "none, 32, 64 or 128")->capture_default_str();
  encode->add_option("--leading", leading, "Default: the value for a dense tile");
  encode->add_option("--stride", stride, "Default: the value for a dense tile");
  encode->add_option("--base-offset", base_offset, "0 to 7")->capture_default_str();
  std::string json;
  for (CLI::App* command : {decode, encode}) {
    command->add_option("--rows", rows_text, "Rows of the operand: 64 for A, N for B")->capture_default_str();
    command->add_option("--json", json, "Write the fields to this file instead");
  }

  return run(app, arguments, output, [&] {
    const auto rows = static_cast<std::uint32_t>(parse_number("--rows", rows_text, 256));
    if (rows == 0 || rows % 8 != 0)
      throw harness::Error(
          fmt::format("--rows is {}; operands of wgmma have a multiple of 8 rows, 8 to 256", rows));
    std::uint64_t bits = 0;
    if (decode->parsed()) {
      const bool prefixed = bits_text.rfind("0x", 0) == 0 || bits_text.rfind("0X", 0) == 0;
      const std::string digits = bits_text.substr(prefixed ? 2 : 0);
      if (digits.empty() || digits.size() > 16 ||
          digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
        throw harness::Error(
            fmt::format("the descriptor is '{}'; it must be 64 bits, 1 to 16 hexadecimal digits", bits_text));
      }
      bits = parse_number("the descriptor", "0x" + digits, ~std::uint64_t{0});
    } else {
      ptx::MatrixDescriptor d;
      d.swizzle = parse_swizzle(swizzle);
      const bool swizzled = d.swizzle != ptx::Swizzle::kNone;
      d.address = parse_field("--address", address);
      // Dense: with a swizzle rows of one span; without, the two blocks of 16 elements of K side by side.
      d.leading_bytes = leading.empty() ? (swizzled ? 16 : 128) : parse_field("--leading", leading);
      d.stride_bytes = stride.empty()
                           ? (swizzled ? static_cast<std::uint32_t>(ptx::period_bytes(d.swizzle)) : 256)
                           : parse_field("--stride", stride);
      d.base_offset = static_cast<std::uint32_t>(parse_number("--base-offset", base_offset, 7));
      bits = ptx::encode(d);
    }
    if (!json.empty()) {
      write_file(json, file_text(bits, rows));
      output.text += fmt::format("the fields of {:#018x} are in {}\n", bits, json);
      return examine_descriptor(bits, rows).wrong.empty() ? harness::kExitOk : harness::kExitMismatch;
    }
    return show(bits, rows, output) ? harness::kExitOk : harness::kExitMismatch;
  });
}

}  // namespace play
