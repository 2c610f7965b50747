"""cmake/link_extern_shared: defines the arrays that `extern __shared__` declares, and nothing else."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from sandbox import ROOT

LINK = ROOT / "cmake/link_extern_shared"
COMPILER = shutil.which("c++") or "c++"

# What a kernel becomes: arrays of two names and types, in a template, in an anonymous namespace and outside of any.
KERNELS = """
namespace kernels {
template <typename T> T* in_template() { extern thread_local __attribute__((aligned(16))) T words[]; return words; }
void* first() { return in_template<int>(); }
}
namespace { void* unnamed() { extern thread_local unsigned char bytes[]; return bytes; } }
void* second() { extern thread_local float values[]; return values; }
void* third() { return unnamed(); }
"""
MAIN = """
#include <cstdio>
#include <mutex>
#include <thread>
extern "C" void* emulator_extern_shared_address();
static int uses = 0;
extern "C" void emulator_use_extern_shared() { ++uses; }
namespace kernels { void* first(); }
void* second();
void* third();
void check(const char* where) {
  void* array = emulator_extern_shared_address();
  const bool same = kernels::first() == array && second() == array && third() == array;
  std::printf("%s: %s, aligned %d\\n", where, same ? "one array" : "different arrays",
              reinterpret_cast<unsigned long long>(array) % 1024 == 0);
}
int main() {
  static std::once_flag once;
  std::call_once(once, [] { check("here"); });
  std::thread(check, "there").join();
  std::printf("%s\\n", uses >= 6 ? "told" : "not told");
}
"""


class LinkExternShared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compiled(self, name, text):
        source = self.folder / f"{name}.cpp"
        source.write_text(text)
        subprocess.run([COMPILER, "-std=c++20", "-O1", "-c", source, "-o", source.with_suffix(".o")], check=True)
        return source.with_suffix(".o")

    def linked(self, *objects):
        command = [LINK, COMPILER, *objects, "-o", self.folder / "program"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_all_arrays_are_one_and_each_use_is_told(self):
        kernels = self.compiled("kernels", KERNELS)
        archive = self.folder / "libkernels.a"
        subprocess.run(["ar", "rc", archive, kernels], check=True)
        main = self.compiled("main", MAIN)
        for kernel in (kernels, archive):
            result = self.linked(main, kernel)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            output = subprocess.run([self.folder / "program"], capture_output=True, text=True, check=True).stdout
            self.assertEqual(output, "here: one array, aligned 1\nthere: one array, aligned 1\ntold\n")

    def test_other_names_stay_undefined(self):
        broken = self.compiled("broken", "int missing(); int main() { return missing(); }")
        result = self.linked(broken)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("missing()", result.stderr)

    def test_a_missing_function_is_named_beside_an_array(self):
        main = self.compiled("main", MAIN.replace("int main() {", "int missing(); int main() { missing();"))
        result = self.linked(main, self.compiled("kernels", KERNELS))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("missing()", result.stderr)
        self.assertNotIn("words", result.stderr)

    def test_a_link_that_needs_nothing_gets_nothing(self):
        self.assertEqual(self.linked(self.compiled("main", "int main() {}")).returncode, 0)
        symbols = subprocess.run(["nm", self.folder / "program"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("extern_shared", symbols)
