// Kernels as text.
#pragma once

#include <filesystem>
#include <string>

#include "view/kernel_view.h"

namespace sass {

struct ReportOptions {
  std::filesystem::path root;  // source paths are shown relative to it
  bool line_numbers = true;    // in the legend; off in committed files, so that moving a line changes nothing
  bool fold = true;            // show long runs of one opcode by their first, second and last instruction
};

/// Two lines: registers, memory; size and work of the main loop.
std::string resource_lines(const KernelView& view);

/// Instructions per class: in the main loop, per k-tile, per math instruction, in the kernel.
std::string mix_table(const KernelView& view);

/// The main loop, normalised and annotated. One line when there is none.
std::string loop_listing(const KernelView& view, const ReportOptions& options);

/// The whole kernel with its real registers and addresses, annotated.
std::string full_listing(const KernelView& view, const ReportOptions& options);

/// What `tools/sass NN` prints: resources, mix, main loop.
std::string report(const KernelView& view, const ReportOptions& options);

/// The text of steps/NN_name/sass.txt: the default variant's report and a table of all variants. The same
/// input gives the same bytes.
std::string listing_file(const StepBinary& binary, const Toolchain& toolchain,
                         const std::filesystem::path& root);

/// The first lines of a listing file up to the versions; two files with different ones cannot be compared.
std::string version_line(const std::string& listing_file);

/// Two kernels side by side: resources, mix, and the difference of their main loops by shape of instruction.
std::string diff(const KernelView& left, const KernelView& right, const std::string& left_name,
                 const std::string& right_name);

/// The opcode table as Markdown: those the course meets, by class.
std::string opcode_markdown();

}  // namespace sass
