"""tools/lint --text refuses the words that the project no longer uses, and nothing else."""
import subprocess
import sys
import unittest

from sandbox import ROOT, SandboxTest

sys.path.insert(0, str(ROOT / "tools/lib"))
import retired_words  # noqa: E402 pylint: disable=wrong-import-position
import text_rules  # noqa: E402 pylint: disable=wrong-import-position

ORDINARY = """A thread starts, and the rest of a tile is left; hold it, add it, take it in turn. The sum of a series. It turns.
Turns a pointer into a report. Turns are taken. The other one, there, where, here, this, history, head, sheet, theirs.
A guard band, bands of colours, kBandwidth, broadband. A counterpart, mutant.cpp, tests/mutants, --mutants-only.
RingPositions, wgmma_holder, adapter, tapestry, twinkle, unannounced, a deal.
"""
REFUSED = {
    "where is he now?": ("he", "it, or name the thread"),
    "He waits.": ("He", "it, or name the thread"),
    "his stage": ("his", "its"),
    "wakes him": ("him", "it"),
    "for himself.": ("himself", "itself"),
    "she waits": ("she", "it, or name the thread"),
    "her stage": ("her", "its"),
    "RingPosition<4> at;": ("RingPosition", "PipelineState"),
    "Turns turns(shared.turns, 1);": ("Turns", "OrderedBarrier"),
    "Turns<2> order;": ("Turns", "OrderedBarrier"),
    "void f(Turns& order);": ("Turns", "OrderedBarrier"),
    "the class `Turns`": ("Turns", "OrderedBarrier"),
    "WorkList work(all, 0);": ("WorkList", "TileScheduler"),
    "rest_of_tile(piece)": ("rest_of_tile", "peers_of"),
    "ptx::wgmma_hold(d);": ("wgmma_hold", "wgmma_fence_operand"),
    "RasterOrder::kBands": ("kBands", "kGrouped"),
    "variant 128x256_bands16_wait0": ("128x256_bands16_wait0", "group16"),
    "tools/play raster --order bands16": ("bands16", "group16"),
    "the tape of k-tiles": ("tape", "stream-K tiles, linearised"),
    "tiles are dealt": ("dealt", "data-parallel"),
    "the kernel's twin": ("twin", "mutant"),
    "announces the bytes": ("announces", "expect-tx"),
    "tools/run 02 --mutants": ("--mutants", "--inject-faults"),
}


def words(path, text):
    return [(line, finding) for line, finding in retired_words.findings(path, text)]


class RetiredWords(unittest.TestCase):
    def test_each_word_is_found_and_its_replacement_is_named(self):
        for text, (word, replacement) in REFUSED.items():
            with self.subTest(text):
                found = words("docs/page.md", f"fine\n{text}\n")
                self.assertEqual([line for line, _ in found], [2] * len(found))
                self.assertTrue(found[0][1].startswith(f"'{word}' is not a word of this project: "), found)
                self.assertIn(replacement, found[0][1])

    def test_ordinary_english_passes(self):
        self.assertEqual(words("docs/page.md", ORDINARY), [])

    def test_every_finding_has_its_line(self):
        self.assertEqual([line for line, _ in words("a.txt", "he and his\n\nthe tape\n")], [1, 1, 3])

    def test_files_that_may_use_a_word_may_use_no_other(self):
        old = "he\ntape\n--mutants\n"
        for path, lines in {"docs/decisions/0003-words.md": [1], "docs/glossary.md": [1], "CHANGELOG.md": [1],
                            "docs/results/suite_h200.json": [1], "docs/results.md": [1, 2, 3],
                            "common/harness/cli/cli_options.cpp": [1, 2], "tests/CMakeLists.txt": [1, 2],
                            "tests/host/verify/verify_test.cpp": [1, 2], "steps/22_peak/kernel.cuh": [1, 2, 3], "steps/18_stream_k/README.md": [1, 2, 3],
                            "tests/mutants/s22/a.mutant": [1, 2, 3], "tests/mutants/s18/a.mutant": [1, 2, 3],
                            "tests/steps/22_peak_test.cpp": [1, 2, 3], "tests/steps/steps_test.cpp": [1, 2, 3]}.items():
            with self.subTest(path):
                self.assertEqual([line for line, _ in words(path, old)], lines)

    def test_every_exception_has_a_reason(self):
        for place, what, why in retired_words.ALLOWED:
            self.assertTrue(place and what and why)


class Style(unittest.TestCase):
    """The habits that a machine can see: a rate without per, words of space for time, and a comment of a lesson that begins with of."""

    def test_a_rate_has_per(self):
        found = list(text_rules.style_findings("docs/a.md", "A kernel has 64 registers a thread.\n| 64 registers a thread |\nIt has 64 registers per thread, "
                                                            "and the bytes a warp requests are 8.\n```\n64 registers a thread\n```\n"))
        self.assertEqual(found, [(1, "'64 registers a thread': a rate has 'per' (docs/style.md)")])
        self.assertEqual(list(text_rules.style_findings("docs/style.md", "64 registers a thread\n")), [])

    def test_no_line_begins_with_the_mark_of_a_number(self):
        found = list(text_rules.style_findings("docs/a.md", "It takes\n<!-- number: source -->3<!-- /number --> clocks.\n\n<!-- number: source -->Four.<!-- /number -->\n"))
        self.assertEqual([line for line, _ in found], [2])

    def test_events_come_before_and_after(self):
        found = list(text_rules.style_findings("docs/a.md", "The thread is one phase behind the barrier.\nIt needs a fence behind the wait.\n"))
        self.assertEqual(found, [(2, "'behind the wait': events come before and after each other (docs/style.md)")])

    def test_a_comment_has_its_noun(self):
        text = "int a;  // of a thread\n// of a sentence that began above\nint b;  // accumulators of a thread\n"
        self.assertEqual(list(text_rules.style_findings("steps/11_new/kernel.cuh", text)),
                         [(1, "'of a thread': 'of' lacks its noun (docs/style.md)")])
        self.assertEqual(list(text_rules.style_findings("tests/a.h", text)), [])


class Lint(SandboxTest):
    def test_lint_names_file_line_word_and_replacement(self):
        subprocess.run(["git", "init", "-q", self.repository], check=True, capture_output=True)
        (self.repository / "a.md").write_text("A warp waits.\nHe is late.\n")
        (self.repository / "b.md").write_text("A warp waits. It is late.\n")
        done = self.run_tool("lint", "--text")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines(),
                         ["a.md:2: 'He' is not a word of this project: it, or name the thread, warp or CTA"])
        (self.repository / "a.md").unlink()
        self.assertEqual(self.run_tool("lint", "--text").returncode, 0)
