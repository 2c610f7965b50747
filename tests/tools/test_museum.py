"""tests/museum: every broken version is reported, no right one is, and the pages of docs/museum quote the reports."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from sandbox import ROOT, emulate_folder

sys.path.insert(0, str(ROOT / "tools"))
import checkers  # noqa: E402 (the path comes first)

MUSEUM = ROOT / "tests/museum"
PAGES = ROOT / "docs/museum"
# The rule of each report; after a slash, --allow of this name makes the run pass.
RULES = {
    ("elected_lane", "NO_WARP_SYNC"): "shared-race",
    ("fence_after_barrier", "FENCE_LATE"): "proxy-fence/proxy-fence-by-writer",
    ("five_stages", "FIVE_STAGES"): "cp-async-overwrite",
    ("five_stages", "NO_LAST_BARRIER"): "shared-race",
    ("gradient_sums", "NO_WAIT"): "dependent-launch",
    ("group_scheduler", "READ_IN_CONSTRUCTOR"): "dependent-launch",
    ("last_arrival", "NO_LAST_BARRIER"): "cluster-exit",
    ("map_in_use", "NO_DRAIN"): "tensormap-in-use",
    ("merge_partitions", "SYNC_LATE"): "dependent-launch",
    ("peer_ready", "CTA_SCOPE"): "shared-race",
    ("peer_ready", "NO_PEER_WAIT"): "load-not-waited",
    ("probabilities", "NEITHER"): "wgmma-operand-uninitialised",
    ("probabilities", "NO_BARRIER"): "wgmma-operand-uninitialised",
    ("probabilities", "NO_FENCE"): "proxy-fence",
    ("read_then_load", "FENCE_BY_PRODUCER"): "proxy-fence-by-reader/proxy-fence-by-reader",
    ("read_then_load", "NO_FENCE"): "proxy-fence-after-read/proxy-fence-after-read",
    ("row_copy", "NO_WAIT"): "cp-async-read-before-wait",
    ("scale_warp", "ONE_WARP_WAITS"): "dependent-launch",
    ("serial_reduction", "NO_FENCE"): "global-race",
    ("staged_copy", "WAIT_ONE_LESS"): "load-overwrites",
    ("state_store", "FENCE_PER_STEP"): "proxy-fence",
    ("state_store", "NO_FENCE"): "proxy-fence",
    ("store_then_flag", "READ_WAIT"): "store-not-waited",
    ("tile_store", "NO_FENCE"): "proxy-fence",
    ("tile_store", "NO_REUSE_BARRIER"): "store-source-race",
    ("vote", "VOTE_ONLY"): "shared-race",
}


def masked(report):
    """Its lines without the namespace of `everything` and what depends on which threads ran first."""
    report = re.sub(r"\b[a-z_]+_[A-Z_]*::", "", report)
    report = re.sub(r"\(\d+,\d+,\d+\)|(?<=warp )\d+|(?<=lane )\d+|(?<=thread )\d+(?= of)|(?<= \+ )\d+(?: \(\d+ bytes\))?|\brank \d|"
                    r"(?<=warpgroup )\d|(?<=group )\d+", "N", report)
    return report.split("\n")


def everything():
    """One file with every version of every exhibit in a namespace of its own; the variable EXHIBIT names the one that runs."""
    files = sorted(MUSEUM.glob("*.cu"))
    includes = sorted({line for file in files for line in file.read_text().split("\n") if line.startswith("#include")})
    lines, calls = [*includes, "#include <cstdlib>", "#include <string>"], []
    for name, defect in checkers.versions([file.stem for file in files]):
        define = ([f"#define {defect}"], [f"#undef {defect}"]) if defect else ([], [])
        lines += [f"namespace {name}_{defect} {{", *define[0], f'#include "{name}.cu"', *define[1], "}"]
        calls.append(f'  if (exhibit == "{name} {defect}"{"" if defect else " || exhibit.empty()"}) {name}_{defect}::check_kernel(run);')
    return "\n".join([*lines, "void check_kernel(emulate::Run& run) {", '  const std::string exhibit = std::getenv("EXHIBIT");', *calls, "}\n"])


class Museum(unittest.TestCase):
    def run_program(self, exhibit, *arguments):
        return subprocess.run([str(self.program), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=ROOT,
                              env={**os.environ, "EXHIBIT": exhibit})

    def test_tables_are_those_of_the_record(self):
        checkers.page(check=True)

    def test_kernels_are_short(self):
        for file in MUSEUM.glob("*.cu"):
            lines = file.read_text().partition("\nvoid check_kernel")[0].split("\n")
            self.assertLessEqual(len([line for line in lines if line and not line.startswith(("//", "#include"))]), 60, file.name)

    def test_reports_and_their_quotations(self):
        if pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator")) != ROOT / "build/emulator":
            self.skipTest("tools/emulate uses build/emulator, and these tests are of another build")
        broken = [version for version in checkers.versions([file.stem for file in MUSEUM.glob("*.cu")]) if version[1]]
        self.assertEqual(sorted(broken), sorted(RULES))
        folder = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, folder)
        (folder / "museum.cu").write_text(everything())
        done = subprocess.run([str(ROOT / "tools/emulate"), str(folder / "museum.cu"), "-I", str(MUSEUM), "--seeds", "1"], capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, check=False, cwd=ROOT, env={**os.environ, "EXHIBIT": ""})
        self.program = emulate_folder(folder / "museum.cu", f"-I{MUSEUM}") / "program"
        self.addCleanup(shutil.rmtree, self.program.parent, ignore_errors=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("no rule is broken, and the results are right", done.stdout)
        pages = "".join(page.read_text() for page in sorted(PAGES.glob("*.md")))
        for (name, defect), rule in RULES.items():
            with self.subTest(name=name, defect=defect):
                report = self.run_program(f"{name} {defect}")
                self.assertEqual(report.returncode, 3, report.stdout + report.stderr)
                self.assertRegex(report.stderr, f"^{rule.split('/')[0]}: ")
                self.assertEqual("stricter this rule is stricter" in report.stderr, "/" in rule, report.stderr)
                if "/" in rule:
                    allowed = self.run_program(f"{name} {defect}", "--seeds", "1", "--allow", rule.split("/")[1])
                    self.assertEqual(allowed.returncode, 0, allowed.stdout + allowed.stderr)
                quoted = re.search(rf"<!-- report: {name} {defect} -->\n```\n(.*?)\n```", pages, re.S)
                if quoted:
                    lines = masked(quoted[1])
                    self.assertEqual(lines, [line for line in masked(report.stderr) if line in lines])
        reports = set(re.findall(r"<!-- report: (\w+) (\w+) -->", pages))
        self.assertEqual({name for name, _ in reports}, {name for name, _ in RULES})  # every exhibit has one
        self.assertLessEqual(reports, set(RULES))


if __name__ == "__main__":
    unittest.main()
