// A tensor map: which specifications are allowed, and what one means.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "command_line.h"
#include "harness/backend/backend.h"
#include "tensor_map_device.h"

namespace play {
namespace {

namespace ptx = gemm::ptx;

constexpr const char* kTensorMapFooter =
    R"(A tensor map tells the copy engine what a tensor in global memory looks like and which box of it one copy
moves. The driver's cuTensorMapEncodeTiled makes one but answers every broken rule with the same error, so
ptx::make_tensor_map() checks first and names the rule. Sizes and boxes are in elements, innermost dimension
first. Strides are in bytes, from dimension 1 on; without them, the tensor is dense. Without arguments, the command
encodes an example.

  tools/play tensor_map encode --extent 4096,1000 --box 64,128 --swizzle 128     # A of a GEMM: 1000 rows, K = 4096
  tools/play tensor_map encode --extent 4096,1000 --box 128,128 --swizzle 128    # the box is wider than the swizzle
  tools/play tensor_map encode --extent 100,1000 --box 64,128                    # rows of 200 bytes
  tools/play tensor_map encode --extent 100,1000 --stride 208 --box 64,128       # rows of 208 bytes, 8 unused
  tools/play tensor_map decode 010070616d756d65...                               # 128 bytes in hexadecimal

The layout of the 128 bytes is not documented (CUDA Driver API, "Tensor Map Object Management": the object is
opaque). On a GPU, they are the driver's, and the command only prints them. The emulator has a layout of its own, which `decode`
reads: 64-bit words, lowest byte first; 0 a magic number, 1 the address, 2 rank, element, swizzle and L2
promotion in a byte each, 3-7 sizes, 8-11 strides, 12-13 the box, 15 a checksum.)";

struct Element {
  const char* name;
  ptx::TensorElement value;
};
constexpr Element kElements[] = {{"bf16", ptx::TensorElement::kBf16},
                                 {"fp16", ptx::TensorElement::kFloat16},
                                 {"fp32", ptx::TensorElement::kFloat32},
                                 {"uint8", ptx::TensorElement::kUint8},
                                 {"uint32", ptx::TensorElement::kUint32}};

struct Promotion {
  const char* name;
  ptx::L2Promotion value;
};
constexpr Promotion kPromotions[] = {{"none", ptx::L2Promotion::kNone},
                                     {"64", ptx::L2Promotion::k64B},
                                     {"128", ptx::L2Promotion::k128B},
                                     {"256", ptx::L2Promotion::k256B}};

/// The table's entry of that name; throws harness::Error that lists the names.
template <typename Table>
auto find_named(const char* what, const Table& table, const std::string& name) {
  std::string known;
  for (const auto& entry : table) {
    if (name == entry.name) return entry.value;
    known += std::string(known.empty() ? "" : ", ") + entry.name;
  }
  throw harness::Error(fmt::format("{} is '{}'; it must be one of {}", what, name, known));
}

template <typename Table, typename Value>
const char* name_of(const Table& table, Value value) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

std::vector<std::uint64_t> parse_list(const char* what, const std::string& text, std::size_t most) {
  std::vector<std::uint64_t> values;
  for (const std::string& part : split(text, ','))
    values.push_back(parse_number(what, part, ~std::uint64_t{0} >> 1));
  if (values.size() > most)
    throw harness::Error(
        fmt::format("{} has {} numbers; it must have at most {}", what, values.size(), most));
  return values;
}

constexpr std::uint64_t kHuge = std::uint64_t{1} << 48;

/// Which 16-byte unit of a row goes where.
std::string swizzle_formula(ptx::Swizzle swizzle) {
  switch (swizzle) {
    case ptx::Swizzle::k32B:
      return "unit u of row r at place u xor (r / 4 mod 2)";
    case ptx::Swizzle::k64B:
      return "unit u of row r at place u xor (r / 2 mod 4)";
    case ptx::Swizzle::k128B:
      return "unit u of row r at place u xor (r mod 8)";
    default:
      return "rows follow each other";
  }
}

void print_meaning(const ptx::TensorMapSpec& spec, Output& output) {
  const auto size = static_cast<std::uint64_t>(ptx::element_bytes(spec.element));
  output.text +=
      fmt::format("tensor   {} at {:#x}, {} dimension{}\n", name_of(kElements, spec.element),
                  reinterpret_cast<std::uintptr_t>(spec.base), spec.rank, spec.rank == 1 ? "" : "s");
  std::string box;
  std::string boxes;
  std::string over;
  for (int i = 0; i < spec.rank; ++i) {
    const auto d = static_cast<std::size_t>(i);
    output.text += fmt::format("  dim {}  {} elements, {} bytes apart\n", i, spec.extent[d],
                               i == 0 ? size : spec.stride_bytes[d]);
    const std::uint64_t along = (spec.extent[d] + spec.box[d] - 1) / spec.box[d];
    box += fmt::format("{}{}", i == 0 ? "" : " x ", spec.box[d]);
    boxes += fmt::format("{}{}", i == 0 ? "" : " x ", along);
    if (along * spec.box[d] != spec.extent[d])
      over += fmt::format("{}{} elements of dimension {}", over.empty() ? "" : " and ",
                          along * spec.box[d] - spec.extent[d], i);
  }
  const std::uint64_t row = spec.box[0] * size;
  output.text += fmt::format("box      {} elements: {} rows of {} bytes, {} bytes for the mbarrier\n", box,
                             ptx::box_bytes(spec) / row, row, ptx::box_bytes(spec));
  output.text += fmt::format("swizzle  {}: {}", swizzle_name(spec.swizzle), swizzle_formula(spec.swizzle));
  if (spec.swizzle != ptx::Swizzle::kNone)
    output.text += fmt::format(", if the tile starts on a multiple of {}", ptx::period_bytes(spec.swizzle));
  output.text += '\n';
  const auto span = static_cast<std::uint64_t>(ptx::span_bytes(spec.swizzle));
  if (spec.swizzle != ptx::Swizzle::kNone && row < span) {
    output.text += fmt::format(
        "unusual: rows of {} bytes are shorter than the swizzle's span; an H200 gives each row {} bytes of "
        "shared memory and does not write the rest\n",
        row, span);
  }
  output.text += fmt::format("L2       promotion {}\n", name_of(kPromotions, spec.l2_promotion));
  output.text += fmt::format("tiling   {} boxes cover the tensor", boxes);
  output.text += over.empty() ? "\n" : fmt::format("; the last ones extend beyond it by {}\n", over);
  if (!over.empty())
    output.text += "         elements beyond the tensor arrive as zeros and count as bytes\n";
}

void print_bytes(const TensorMapBytes& bytes, Output& output) {
  constexpr std::size_t kPerLine = 32;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    output.text += fmt::format("{:02x}{}", bytes[i], i % kPerLine == kPerLine - 1 ? "\n" : "");
  }
}

TensorMapBytes parse_bytes(const std::vector<std::string>& words) {
  std::string digits;
  for (const std::string& word : words) {
    for (const char c : word) {
      if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;  // several lines in one argument
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0)
        throw harness::Error(fmt::format("'{}' is not a hexadecimal digit; a tensor map is 256 of them", c));
      digits += c;
    }
  }
  TensorMapBytes bytes;
  if (digits.size() != 2 * bytes.size())
    throw harness::Error(fmt::format(
        "{} hexadecimal digits were given; a tensor map is 128 bytes, 256 digits", digits.size()));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(parse_number("a byte", "0x" + digits.substr(2 * i, 2), 255));
  return bytes;
}

}  // namespace

int tensor_map(const std::vector<std::string>& arguments, Output& output) {
  if (arguments.empty())
    return example("tensor_map", tensor_map, "encode --extent 4096,1000 --box 64,128 --swizzle 128", output);
  CLI::App app{"Checks the specification of a tensor map and says what it means.", "tools/play tensor_map"};
  app.require_subcommand(1);
  app.footer(kTensorMapFooter);
  CLI::App* encode = app.add_subcommand("encode", "Check a specification, explain it and print the map");
  std::string base = "0x7f0000000000";
  std::string element = "bf16";
  std::string extent;
  std::string stride;
  std::string box;
  std::string swizzle = "none";
  std::string promotion = "128";
  encode->add_option("--extent", extent, "Sizes of the tensor in elements, innermost first")->required();
  encode->add_option("--stride", stride,
                     "Bytes from one index to the next, from dimension 1 on; default: dense");
  encode->add_option("--box", box, "Sizes of the box in elements, innermost first")->required();
  encode->add_option("--swizzle", swizzle, "none, 32, 64 or 128")->capture_default_str();
  encode->add_option("--element", element, "bf16, fp16, fp32, uint8 or uint32")->capture_default_str();
  encode->add_option("--l2", promotion, "Bytes that the L2 fetches at a miss: none, 64, 128 or 256")
      ->capture_default_str();
  encode->add_option("--base", base, "Address of the tensor; nothing is read there")->capture_default_str();
  CLI::App* decode = app.add_subcommand("decode", "Explain the emulator's 128 bytes");
  std::vector<std::string> words;
  decode->add_option("bytes", words, "256 hexadecimal digits, with or without blanks between them")
      ->required();

  return run(app, arguments, output, [&] {
    ptx::TensorMapSpec spec;
    if (decode->parsed()) {
      spec = decode_tensor_map(parse_bytes(words));
    } else {
      const auto sizes = parse_list("--extent", extent, ptx::kMaxTensorRank);
      const auto box_sizes = parse_list("--box", box, ptx::kMaxTensorRank);
      if (box_sizes.size() != sizes.size())
        throw harness::Error(
            fmt::format("--extent has {} dimensions, but --box has {}; both must have the same rank",
                        sizes.size(), box_sizes.size()));
      spec.base =
          reinterpret_cast<const void*>(static_cast<std::uintptr_t>(parse_number("--base", base, ~0ull)));
      spec.element = find_named("--element", kElements, element);
      spec.rank = static_cast<int>(sizes.size());
      spec.swizzle = parse_swizzle(swizzle);
      spec.l2_promotion = find_named("--l2", kPromotions, promotion);
      std::vector<std::uint64_t> strides;
      if (!stride.empty()) {
        strides = parse_list("--stride", stride, ptx::kMaxTensorRank - 1);
        if (strides.size() + 1 != sizes.size())
          throw harness::Error(fmt::format("--stride has {} numbers, but a tensor of {} dimensions needs {}",
                                           strides.size(), sizes.size(), sizes.size() - 1));
      }
      std::uint64_t dense = static_cast<std::uint64_t>(ptx::element_bytes(spec.element));
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        spec.extent[i] = sizes[i];
        spec.box[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(box_sizes[i], ~0u));
        if (i > 0) spec.stride_bytes[i] = strides.empty() ? dense : strides[i - 1];
        // No stride may reach 2^40, so what is larger need not be exact.
        dense = sizes[i] > kHuge / dense ? kHuge : dense * std::max<std::uint64_t>(sizes[i], 1);
      }
      const std::string broken = ptx::violated_rule(spec);
      if (!broken.empty()) throw harness::Error(broken);
    }
    print_meaning(spec, output);
    if (encode->parsed()) {
      const TensorMapBytes bytes = encode_tensor_map(spec);
      output.text += harness::device_info().is_emulator ? "bytes, the emulator's\n" : "bytes, the driver's\n";
      print_bytes(bytes, output);
    }
    return harness::kExitOk;
  });
}

}  // namespace play
