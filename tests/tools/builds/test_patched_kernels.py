"""cmake/GemmPatch.cmake: a patched kernel has the one variant that its test runs."""
import pathlib
import re
import subprocess
import tempfile
import unittest

from sandbox import ROOT

PATCH = "step: 02_shared_tile\nvariant: 32\n--- old\nold line\n--- new\nnew line\n--- end\n"
KERNEL = """old line
inline const Step kStep{.variants = {variant<32, 1>("32", "a [tile]; (padded)"),
                                     variant<Tiling<16, 2>>("16",
                                                            "half " "the reuse")}};
"""


class PatchedKernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def patched(self, patch, kernel, variant):
        """The kernel's text, and what CMake said of it on one line."""
        output = self.folder / "kernel.cuh"
        output.unlink(missing_ok=True)
        done = subprocess.run(["cmake", "-D", f"PATCH={patch}", "-D", f"KERNEL={kernel}", "-D", f"OUTPUT={output}",
                               *([] if variant is None else ["-D", f"VARIANT={variant}"]), "-P", str(ROOT / "cmake/GemmPatch.cmake")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode == 0, output.exists())
        return output.read_text() if output.exists() else None, " ".join(done.stderr.split())

    def patched_text(self, kernel, variant):
        (self.folder / "a.mutant").write_text(PATCH)
        (self.folder / "given.cuh").write_text(kernel)
        return self.patched(self.folder / "a.mutant", self.folder / "given.cuh", variant)

    def test_the_others_are_cut_out(self):
        for variant, kept in (("32", 'variant<32, 1>("32", "a [tile]; (padded)")'),
                              ("16", KERNEL[KERNEL.index("variant<Tiling"):-4])):
            text, _ = self.patched_text(KERNEL, variant)
            self.assertEqual(text, "new line\ninline const Step kStep{.variants = {" + kept + "}};\n")

    def test_of_a_table_one_line_is_kept(self):
        table = "old line\nmake(std::make_index_sequence<kTiles.size()>());\n  all.insert(all.begin(), by_shape);\nend\n"
        text, _ = self.patched_text(table, "128x256")
        self.assertEqual(text, 'new line\nmake(std::index_sequence<number_of("128x256")>());\nend\n')

    def test_a_variant_that_is_not_there_is_an_error(self):
        for kernel, variant in ((KERNEL, "64"), (KERNEL, "a"), (KERNEL.replace("variant<", "made<"), "32")):
            text, error = self.patched_text(kernel, variant)
            self.assertIsNone(text)
            self.assertIn(f"given.cuh has no variant '{variant}' that is written like", error)

    def test_what_stands_between_variants_is_not_lost(self):
        text, error = self.patched_text(KERNEL.replace("    variant<Tiling", "made_otherwise(), variant<Tiling"), "16")
        self.assertIsNone(text)
        self.assertIn("does not list its variants one behind the other", error)

    def test_each_mutant_has_its_own_in_the_kernel_of_its_step(self):
        mutants = sorted(ROOT.glob("tests/mutants/s*/**/*.mutant"))
        self.assertGreater(len(mutants), 100)
        for mutant in mutants:
            fields = dict(re.findall(r"^(step|variant|file): *(.*)$", mutant.read_text(), re.M))
            variant = fields["variant"]
            kernel = ROOT / "steps" / fields["step"] / "kernel.cuh"
            with self.subTest(mutant=mutant.name):
                if "file" in fields:  # its lines are a header's, and the kernel is patched in the variant alone
                    header = next(path for path in (kernel.parent / fields["file"], ROOT / "common" / fields["file"])
                                  if path.exists())
                    text, error = self.patched(mutant, header, None)
                    self.assertIsNotNone(text, error)
                    mutant = self.folder / "none.mutant"
                    mutant.write_text("")
                text, error = self.patched(mutant, kernel, variant)
                self.assertIsNotNone(text, error)
                text = text.split(".variants = {")[-1]
                entries = re.findall(r'(?:variant<|Fitted<|Configured<number_of\(|index_sequence<number_of\()[^"]*"([^"]*)"', text)
                self.assertEqual(set(entries), {variant})
