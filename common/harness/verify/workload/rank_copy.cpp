#include "harness/verify/workload/rank_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "harness/base/parallel.h"
#include "harness/base/problem.h"

namespace harness {
namespace {

/// Ahead of the inbox and behind it: nobody may store there.
constexpr std::int64_t kMarginBytes = 4096;
constexpr std::int64_t kWordBytes = sizeof(std::uint32_t);

std::vector<std::uint32_t> sent_words(int rank, std::uint32_t epoch, std::int64_t bytes) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(bytes / kWordBytes));
  parallel_for(static_cast<std::int64_t>(words.size()), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      words[static_cast<std::size_t>(i)] =
          gemm::sent_word(static_cast<std::uint32_t>(rank), epoch, static_cast<std::uint32_t>(i));
  });
  return words;
}

/// What a word that is not the right one may be.
std::string explain(std::uint32_t word, int ranks, std::uint32_t epoch, std::uint32_t index) {
  if (word == 0xffffffffu) return "it was never written";
  for (int rank = 0; rank < ranks; ++rank) {
    const auto sender = static_cast<std::uint32_t>(rank);
    if (word == gemm::sent_word(sender, epoch, index)) return fmt::format("rank {} has sent it", rank);
    if (word == gemm::sent_word(sender, epoch + 1, index))
      return fmt::format("rank {} has sent it in the epoch before", rank);
  }
  return "nobody has sent it to this place";
}

}  // namespace

RankCopy::RankCopy(const RankCopyForm& form) : form_(form), ranks_(form.ranks) {
  const auto bytes = static_cast<std::size_t>(form.bytes);
  const auto flags = static_cast<std::size_t>(form.bytes / gemm::kCopyChunkBytes + 1) * kWordBytes;
  for (int rank = 0; rank < form.ranks; ++rank) {
    const auto zeroed = [&](std::size_t size, const char* what) {
      void* memory = ranks_.allocate(rank, size, fmt::format("{} of rank {}", what, rank));
      ranks_.fill(rank, memory, 0, size);
      return static_cast<std::uint32_t*>(memory);
    };
    gemm::RankMemory& memory = memory_.emplace_back();
    for (std::uint32_t parity = 0; parity < 2; ++parity) {
      void* source = ranks_.allocate(rank, bytes, fmt::format("source {} of rank {}", parity, rank));
      ranks_.copy_to(rank, source, sent_words(rank, parity, form.bytes).data(), bytes);
      memory.source[parity] = source;
    }
    void* const guarded =
        ranks_.allocate(rank, bytes + 2 * kMarginBytes, fmt::format("inbox of rank {}", rank));
    memory.inbox = static_cast<std::byte*>(guarded) + kMarginBytes;
    memory.arrived = zeroed(flags, "flags");
    memory.taken = zeroed(kWordBytes, "taken");
    memory.wrong = zeroed(kWordBytes, "wrong words");
  }
  poison();
}

gemm::PeerCopy RankCopy::problem(std::int64_t piece_bytes, int ctas) const {
  return {.ranks = memory_,
          .bytes = form_.bytes,
          .piece_bytes = piece_bytes,
          .ctas = ctas,
          .reader_ctas = form_.reader_ctas};
}

void RankCopy::poison() {
  for (int rank = 0; rank < form_.ranks; ++rank) {
    const gemm::RankMemory& memory = memory_[static_cast<std::size_t>(rank)];
    ranks_.fill(rank, static_cast<std::byte*>(memory.inbox) - kMarginBytes, kPoisonByte,
                static_cast<std::size_t>(form_.bytes + 2 * kMarginBytes));
    ranks_.fill(rank, memory.wrong, 0, kWordBytes);
  }
}

void RankCopy::start(const gemm::RankLauncher& launcher, Readers readers, const Delay& delay) {
  ++epoch_;
  const auto give = [&](int rank, RankStream which, const gemm::RankWork& work) {
    if (work) work(rank, epoch_, ranks_.stream(rank, which));
  };
  const auto read = [&](int rank) {
    if (!reads(rank)) return;
    ranks_.enter(rank);
    if (delay) delay(rank, ranks_.stream(rank, RankStream::kRead));
    give(rank, RankStream::kRead, launcher.reader);
  };
  for (int rank = 0; rank < form_.ranks; ++rank) {
    if (readers == Readers::kBeside) read(rank);
    if (!is_timed(rank)) continue;
    ranks_.enter(rank);
    if (delay) delay(rank, ranks_.stream(rank, RankStream::kSend));
    for (const gemm::RankWork* work : {&launcher.before, &launcher.run, &launcher.after})
      give(rank, RankStream::kSend, *work);
  }
  if (readers == Readers::kBeside) return;
  ranks_.synchronize();
  for (int rank = 0; rank < form_.ranks; ++rank) read(rank);
}

CheckResult RankCopy::check() {
  std::string report;
  for (int rank = 0; rank < form_.ranks; ++rank) {
    const gemm::RankMemory& memory = memory_[static_cast<std::size_t>(rank)];
    const int sender = (rank + form_.ranks - 1) % form_.ranks;
    std::uint32_t wrong = 0;
    ranks_.copy_from(rank, &wrong, memory.wrong, sizeof wrong);
    if (wrong != 0)
      report += fmt::format(
          "rank {}: its reader found {} wrong words in pieces whose flags said that they had arrived\n", rank,
          wrong);
    std::vector<std::uint32_t> got(static_cast<std::size_t>((form_.bytes + 2 * kMarginBytes) / kWordBytes));
    ranks_.copy_from(rank, got.data(), static_cast<std::byte*>(memory.inbox) - kMarginBytes,
                     got.size() * kWordBytes);
    const std::int64_t words = form_.bytes / kWordBytes;
    const std::int64_t guard = kMarginBytes / kWordBytes;
    std::int64_t count = 0;
    std::int64_t outside = 0;
    std::string first;
    for (std::int64_t i = -guard; i < words + guard; ++i) {
      const std::uint32_t word = got[static_cast<std::size_t>(i + guard)];
      const bool is_inside = reads(rank) && i >= 0 && i < words;
      const auto index = static_cast<std::uint32_t>(i);
      const std::uint32_t expected =
          is_inside ? gemm::sent_word(static_cast<std::uint32_t>(sender), epoch_, index) : 0xffffffffu;
      if (word == expected) continue;
      if (is_inside && count++ == 0)
        first = fmt::format("the first is word {} of {}: 0x{:08x} instead of 0x{:08x}; {}", i, words, word,
                            expected, explain(word, form_.ranks, epoch_, index));
      if (!is_inside) ++outside;
    }
    if (count != 0)
      report += fmt::format("rank {}: {} of {} words from rank {} are wrong; {}\n", rank, count, words,
                            sender, first);
    if (outside != 0)
      report += fmt::format("rank {}: {} words outside its inbox were overwritten\n", rank, outside);
  }
  const bool ok = report.empty();
  return {.ok = ok,
          .report = report,
          .summary = ok ? fmt::format("all {} words of every rank are right", form_.bytes / kWordBytes)
                        : "failed: words that are not what was sent",
          .failed = ok ? std::vector<std::string>{} : std::vector<std::string>{"copy"}};
}

std::vector<RankCase> rank_cases() {
  constexpr std::int64_t kChunk = gemm::kCopyChunkBytes;
  return {
      {{.ranks = 2, .bytes = 14 * kChunk + gemm::kCopyRowBytes}, kChunk, 1, "a ring that wraps, an odd end"},
      {{.ranks = 2, .bytes = 9 * kChunk, .reader_ctas = 2}, 2 * kChunk, 2, "pieces of two chunks, two CTAs"},
      {{.ranks = 3, .bytes = 3 * kChunk}, kChunk, 2, "three ranks in a circle"}};
}

RankCase rank_case(const gemm::Shape& shape) {
  return {.form = {.ranks = shape.m, .bytes = std::int64_t{shape.n} * gemm::kCopyRowBytes}, .ctas = shape.k};
}

CheckResult check_rank_case(const gemm::Variant& variant, const RankCase& one, int epochs) {
  RankCopy copy(one.form);
  return copy.run(variant.prepare_ranks(copy.problem(one.piece_bytes, one.ctas)), epochs,
                  RankRun::Readers::kBeside);
}

}  // namespace harness
