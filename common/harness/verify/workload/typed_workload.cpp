#include "harness/verify/workload/typed_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gemm/problem/check_problem.h"
#include "gemm/problem/weights.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/verify/types/quantised.h"
#include "harness/verify/types/weights.h"
#include "harness/verify/workload/guarded_buffer.h"
#include "ptx/tcgen05_scaled_descriptor.h"

namespace harness {
namespace {

std::size_t typed_bytes(int rows, int columns, gemm::Type type) {
  return static_cast<std::size_t>(gemm::offset(rows, 0, columns) * gemm::bits_of(type) / 8);
}

/// D, with its scales where it has some.
std::size_t d_bytes(const gemm::Shape& shape, const gemm::Types& types) {
  return types.quantise_d() ? quantised_bytes(shape) : typed_bytes(shape.m, shape.n, types.d);
}

/// Of the scales of weights; 0 where there are none.
std::size_t scale_bytes(const gemm::Shape& shape, const gemm::Types& types) {
  return types.has_weights()
             ? typed_bytes(shape.k / types.group * types.scale_lines(), shape.n, gemm::Type::kBf16)
             : 0;
}

/// Floats from one row of scales to the next: as many as TMA can step over, and no more, for so does
/// cuBLASLt.
int scale_pitch(int columns) {
  return gemm::ceil_div(columns, 4) * 4;
}

std::unique_ptr<DeviceBuffer> scale_buffer(std::size_t rows, int columns, const char* name) {
  return std::make_unique<DeviceBuffer>(rows * static_cast<std::size_t>(scale_pitch(columns)) * sizeof(float),
                                        name);
}

/// Rows of `columns` scales, what lies between them NaN.
void write_scales(DeviceBuffer& device, const std::vector<float>& scales, int columns) {
  const auto pitch = static_cast<std::size_t>(scale_pitch(columns));
  const auto wide = static_cast<std::size_t>(columns);
  const std::size_t rows = scales.size() / wide;
  std::vector<float> padded(rows * pitch, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t row = 0; row < rows; ++row) std::copy_n(&scales[row * wide], wide, &padded[row * pitch]);
  copy_to_device(device.bytes(), padded.data(), padded.size() * sizeof(float));
}

constexpr int kMxPiece = 512;  // bytes: scales of 128 rows and 4 blocks

int mx_pieces(int rows, int blocks) {
  return gemm::ceil_div(rows, 128) * gemm::ceil_div(blocks, 4);
}

/// ue8m0 or ue4m3 scales, [block][rows], as the tensor cores want them. Those of rows that do not exist are
/// NaN, those of blocks that do not exist the smallest.
std::vector<std::uint8_t> scale_pieces(const gemm::Types& types, const std::vector<float>& scales, int rows,
                                       int blocks) {
  std::vector<std::uint8_t> pieces(static_cast<std::size_t>(mx_pieces(rows, blocks)) * kMxPiece);
  const int wide = gemm::ceil_div(blocks, 4);
  for (int row = 0; row < gemm::ceil_div(rows, 128) * 128; ++row) {
    for (int block = 0; block < wide * 4; ++block) {
      std::uint8_t bits = row < rows ? 0 : 0xff;
      if (row < rows && block < blocks) {
        const float scale = scales[static_cast<std::size_t>(gemm::offset(block, row, rows))];
        bits =
            types.are_nv() ? gemm::to_e4m3(scale).bits : static_cast<std::uint8_t>(127 + std::ilogb(scale));
      }
      const auto piece = static_cast<std::size_t>(gemm::offset(row / 128, block / 4, wide));
      pieces[piece * kMxPiece + static_cast<std::size_t>(gemm::ptx::scale_offset(row, block))] = bits;
    }
  }
  return pieces;
}

}  // namespace

TypedWorkload::TypedWorkload(const gemm::Shape& shape, const gemm::Types& types, Pattern pattern,
                             std::uint64_t seed, bool saturates, bool wide,
                             const std::vector<gemm::GroupRows>& groups, int capacity)
    : saturates_(saturates),
      groups_(groups),
      capacity_(capacity),
      first_seed_(seed),
      rules_(typed_rules(shape, types, pattern, seed, saturates, groups)) {
  if (capacity > 0) counts_ = std::make_unique<DeviceBuffer>(groups.size() * sizeof(int), "counts");
  if (types.has_weights()) {
    const std::string rule = gemm::violated_weight_rule(shape, types.group);
    if (!rule.empty()) throw Error(rule);
    group_scales_ = std::make_unique<DeviceBuffer>(scale_bytes(shape, types), "the scales of the weights");
    if (wide) wide_ = std::make_unique<DeviceBuffer>(typed_bytes(shape.n, shape.k, types.a), "wide weights");
  }
  if (const std::string rule = gemm::violated_quantised_rule(shape, types); !rule.empty()) throw Error(rule);
  a_ = std::make_unique<DeviceBuffer>(typed_bytes(shape.m, shape.k, types.a), "A");
  b_ = std::make_unique<DeviceBuffer>(typed_bytes(rules_.b.rows, shape.k, types.b), "B");
  scales_ = std::make_unique<DeviceBuffer>(sizeof rules_.scales, "scales");
  if (types.have_blocks()) {
    const auto blocks = static_cast<std::size_t>(rules_.blocks_of_k());
    blocks_a_ = scale_buffer(blocks, shape.m, "scales of A");
    blocks_b_ = scale_buffer(rules_.blocks_b.size() / blocks, rules_.blocks_of_k(), "scales of B");
  }
  if (types.have_scale_pieces()) {
    const auto of = [&](int rows, const char* name) {
      return std::make_unique<DeviceBuffer>(
          static_cast<std::size_t>(mx_pieces(rows, rules_.blocks_of_k())) * kMxPiece, name);
    };
    blocks_a_ = of(shape.m, "scales of A");
    blocks_b_ = of(shape.n, "scales of B");
  }
  d_ = std::make_unique<GuardedBuffer>(d_bytes(shape, types), "D");
  fill_inputs();
  poison();
}
TypedWorkload::~TypedWorkload() = default;

void TypedWorkload::fill_inputs() {
  write_device(a_->bytes(), typed_a(rules_));
  if (counts_) {
    std::vector<int> counts;
    for (const gemm::GroupRows& group : rules_.groups)
      counts.push_back(unchecked_count(group.count(), capacity_));
    copy_to_device(counts_->bytes(), counts.data(), counts.size() * sizeof(int));
  }
  if (rules_.types.has_weights()) {
    write_device(b_->bytes(), weight_input(rules_));
    write_device(group_scales_->bytes(), scale_input(rules_));
    if (wide_) write_device(wide_->bytes(), wide_weights(rules_));
  } else {
    write_device(b_->bytes(), typed_input(rules_.b, rules_.types.b, rules_.types.major_b));
  }
  copy_to_device(scales_->bytes(), rules_.scales.data(), sizeof rules_.scales);
  if (rules_.types.have_scale_pieces()) {
    const int blocks = rules_.blocks_of_k();
    write_device(blocks_a_->bytes(), scale_pieces(rules_.types, rules_.blocks_a, rules_.a.rows, blocks));
    write_device(blocks_b_->bytes(), scale_pieces(rules_.types, rules_.blocks_b, rules_.b.rows, blocks));
  }
  if (!rules_.types.have_blocks()) return;
  std::vector<float> of_rows = rules_.blocks_a;  // NaN where a row is of no group
  const std::vector<int> groups = groups_of_rows(rules_);
  for (std::size_t i = 0; i < of_rows.size(); ++i) {
    if (groups[i % groups.size()] < 0) of_rows[i] = std::numeric_limits<float>::quiet_NaN();
  }
  write_scales(*blocks_a_, of_rows, rules_.a.rows);
  write_scales(*blocks_b_, rules_.blocks_b, rules_.blocks_of_k());
}

gemm::Problem TypedWorkload::problem() const {
  gemm::Problem problem;
  static_cast<gemm::Gemm&>(problem) = {rules_.shape(), a_->elements(), b_->elements(),
                                       reinterpret_cast<gemm::bf16*>(d_->bytes())};
  problem.types = rules_.types;
  problem.groups = rules_.groups;
  problem.capacity = capacity_;
  if (counts_) problem.counts = reinterpret_cast<const int*>(counts_->bytes());
  if (rules_.types.have_blocks()) {
    problem.scales_a = reinterpret_cast<const float*>(blocks_a_->bytes());
    problem.scales_a_pitch = scale_pitch(rules_.a.rows);
    problem.scales_b = reinterpret_cast<const float*>(blocks_b_->bytes());
    problem.scales_b_pitch = scale_pitch(rules_.blocks_of_k());
  } else if (rules_.types.have_scale_pieces()) {
    problem.mx_scales_a = reinterpret_cast<const std::uint8_t*>(blocks_a_->bytes());
    problem.mx_scales_b = reinterpret_cast<const std::uint8_t*>(blocks_b_->bytes());
    if (rules_.types.quantise_d()) problem.mx_scales_d = d_->bytes() + quantised_scales_begin(rules_.shape());
    if (rules_.types.are_nv()) problem.scales = reinterpret_cast<const float*>(scales_->bytes());
  } else if (rules_.types.are_k_major() && !group_scales_) {
    problem.scales = reinterpret_cast<const float*>(scales_->bytes());
  }
  if (group_scales_) problem.group_scales = group_scales_->elements();
  if (wide_) problem.wide_b = wide_->elements();
  return problem;
}

void TypedWorkload::use_inputs(std::uint64_t seed) {
  if (seed == rules_.a.seed) return;
  const std::vector<gemm::GroupRows> groups =
      capacity_ > 0 ? with_others_counts(groups_, seed - first_seed_) : groups_;
  rules_ = typed_rules(rules_.shape(), rules_.types, rules_.a.pattern, seed, saturates_, groups);
  fill_inputs();
}

void TypedWorkload::poison() {
  std::vector<std::uint8_t> d(d_->size());
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = typed_poison(rules_.types.d, i);
  write_device(d_->bytes(), d);
  d_->repair_guards();
}

CheckResult TypedWorkload::check(const gemm::TileShape& tile) {
  synchronize();
  const std::string clue = take_emulator_clue();
  const TypedImage now = image();
  TypedAcceptance& acceptance = acceptances_[rules_.a.seed];
  if (acceptance.low.empty()) acceptance = typed_acceptance(rules_);
  CheckResult result = verify(rules_, now, acceptance, tile);
  if (!result.ok) {
    fill_inputs();
    if (!clue.empty()) result.report += fmt::format("  Clue: {}\n", clue);
  }
  return result;
}

TypedImage TypedWorkload::image() const {
  return {.a = read_device<std::uint8_t>(a_->bytes(),
                                         typed_bytes(rules_.a.rows, rules_.a.columns, rules_.types.a)),
          .b = read_device<std::uint8_t>(b_->bytes(),
                                         typed_bytes(rules_.b.rows, rules_.b.columns, rules_.types.b)),
          .group_scales = group_scales_ ? read_device<std::uint8_t>(group_scales_->bytes(),
                                                                    scale_bytes(rules_.shape(), rules_.types))
                                        : std::vector<std::uint8_t>{},
          .before = d_->read_before(),
          .d = read_device<std::uint8_t>(d_->bytes(), d_->size()),
          .after = d_->read_after()};
}

void TypedWorkload::restore(const TypedImage& image) {
  write_device(a_->bytes(), image.a);
  write_device(b_->bytes(), image.b);
  if (group_scales_) write_device(group_scales_->bytes(), image.group_scales);
  write_device(d_->before(), image.before);
  write_device(d_->bytes(), image.d);
  write_device(d_->after(), image.after);
}

std::int64_t typed_workload_bytes(const gemm::Shape& shape, const gemm::Types& types, int groups) {
  const int blocks = gemm::ceil_div(shape.k, gemm::kScaleBlock);
  const std::int64_t of_blocks =
      !types.have_blocks()
          ? 0
          : (gemm::offset(blocks, 0, scale_pitch(shape.m)) +
             groups * gemm::offset(gemm::ceil_div(shape.n, gemm::kScaleBlock), 0, scale_pitch(blocks))) *
                static_cast<std::int64_t>(sizeof(float));
  std::int64_t of_mx = 0;
  if (types.have_scale_pieces()) {
    const int mx_blocks = gemm::ceil_div(shape.k, types.scale_block());
    of_mx = std::int64_t{kMxPiece} * (mx_pieces(shape.m, mx_blocks) + mx_pieces(shape.n, mx_blocks));
  }
  return of_blocks + of_mx +
         static_cast<std::int64_t>(typed_bytes(shape.m, shape.k, types.a) +
                                   static_cast<std::size_t>(groups) * typed_bytes(shape.n, shape.k, types.b) +
                                   d_bytes(shape, types) + scale_bytes(shape, types) + 2 * kGuardBytes +
                                   3 * sizeof(float));
}

}  // namespace harness
