// The asm statements of preprocessed C++.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace emulate {

/// Where a piece of preprocessed text comes from: `# 12 "file.h" 3`.
struct LineMark {
  std::size_t begin;  // of the mark's line
  std::size_t end;    // of the text's first line
  int line;
  std::string file;
  bool is_system;
};

/// Text as the preprocessor leaves it. Marks and pragmas are no part of `code`, and neither is what stands in
/// literals, comments and headers of the system.
class Preprocessed {
 public:
  /// `own_folders`: of headers of the emulator, which are left alone like the system's.
  explicit Preprocessed(std::string text, const std::vector<std::string>& own_folders = {});

  const std::string& text() const { return text_; }
  /// As long as the text, with blanks for what is not to be looked at.
  const std::string& code() const { return code_; }
  /// The text without its marks, as long as it.
  const std::string& unmarked() const { return unmarked_; }
  /// "file.cu:12"
  std::string place(std::size_t at) const;
  /// `# 12 "file.cu"` for what follows `at`, on a line of its own.
  std::string mark(std::size_t at) const;

 private:
  const LineMark* mark_before(std::size_t at) const;
  int line_at(std::size_t at) const;

  std::string text_;
  std::string unmarked_;
  std::string code_;
  std::vector<LineMark> marks_;
};

struct Edit {
  std::size_t begin;
  std::size_t end;
  std::string text;
};

/// An asm statement of PTX: what replaces it, and for --list-ptx what it needs.
struct PtxStatement {
  Edit edit;
  std::string place;
  std::string untranslated;  // "" where all of it is known
  std::vector<std::string> opcodes;
};
std::vector<PtxStatement> ptx_statements(const Preprocessed& source);

}  // namespace emulate
