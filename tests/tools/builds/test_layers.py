"""The arrows between the folders: every #include "..." points down, as cmake/GemmLibraries.cmake says."""
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SUFFIXES = (".h", ".cuh", ".cpp", ".cu")
BACKENDS = ("gpu", "emulator")
MACHINES = ("native", "wasm")  # of the emulator
INTERFACE = "harness/backend"  # its headers are what a backend implements, and below everything
ELEMENTS = ("gemm/problem/bf16.h", "gemm/problem/types.h")  # the types of elements, which include nothing else: instructions convert to them


class Libraries:
    """What GemmLibraries.cmake says: which library a folder of common/ belongs to, and what each library depends on."""

    def __init__(self, text):
        self.folders = {}  # folder -> library
        self.below = {}    # library -> the libraries that it may include, itself among them
        self.problems = []
        text = re.sub(r"#.*", "", text)
        for name, arguments in re.findall(r"gemm_add_library\(\s*(gemm_\w+)([^()]*)\)", text):
            lists = {"HEADERS": [], "FOLDERS": [], "COLD": [], "DEPENDS": []}
            words = None
            for word in arguments.split():
                if word in lists:
                    words = lists[word]
                else:
                    words.append(word)
            below = self.below.setdefault(name, {name})
            for dependency in lists["DEPENDS"]:
                below |= self.below.get(dependency, set())
            for folder in lists["FOLDERS"] + lists["COLD"]:
                for backend in BACKENDS:
                    for machine in MACHINES:
                        self.folders[folder.replace("${GEMM_STEPS_BACKEND}", backend).replace("${GEMM_STEPS_MACHINE}", machine)] = name
        # What is linked by hand must point down, too.
        for name, arguments in re.findall(r"target_link_libraries\(\s*(gemm_\w+)([^()]*)\)", text):
            for other in re.findall(r"\bgemm_\w+", arguments):
                if other in self.below and other not in self.below.get(name, set()):
                    self.problems.append(f"{name} links {other}, which is not below it")

    def may_include(self, folder, target):
        library = self.folders.get(folder)
        return self.folders.get(target) in self.below.get(library, set())


def sources(root, *folders):
    """The sources in these folders of the repository, with the folder of each relative to what is included from."""
    for top in folders:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path, path.relative_to(root / top).parent.as_posix()


def includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)


def folder_of(include):
    return include.rpartition("/")[0]


def is_interface(include):
    return folder_of(include) == INTERFACE


def problems(root, area):
    """The #includes of this area ("harness", "emulator", "ptx", "gemm", "steps") that point up or out, as sentences."""
    libraries = Libraries((root / "cmake" / "GemmLibraries.cmake").read_text(encoding="utf-8"))
    found = []

    def check(path, include, allowed):
        if not allowed:
            found.append(f'{path.relative_to(root).as_posix()} must not include "{include}"')

    if area == "steps":
        for path, folder in sources(root, "steps"):
            for include in includes(path):
                own = "/" not in include and (path.parent / include).is_file()
                check(path, include, include.startswith(("ptx/", "gemm/", f"{folder.partition('/')[0]}/")) or own)
        return found
    for path, folder in sources(root, f"common/{area}"):
        folder = area if folder == "." else f"{area}/{folder}"
        for include in includes(path):
            if area == "ptx":
                allowed = include.startswith("ptx/") or include in ELEMENTS
            elif area == "gemm":
                allowed = include.startswith(("ptx/", "gemm/"))
            elif area == "emulator":
                allowed = include.startswith(("ptx/", "emulator/")) or include in ELEMENTS or is_interface(include)
                if folder.startswith("emulator/cuda"):  # where CUDA's own names are
                    allowed = allowed or (root / "common/emulator/cuda" / include).is_file()
            elif include.startswith(("ptx/", "gemm/")):
                allowed = True
            elif folder == INTERFACE and path.suffix == ".h":
                allowed = is_interface(include)
            else:  # never the emulator: on the GPU there is none
                allowed = include.startswith("harness/") and (
                    is_interface(include) or libraries.may_include(folder, folder_of(include)))
            check(path, include, allowed)
    return found


LIBRARIES = """
gemm_add_library(gemm_base HEADERS h FOLDERS harness/base)
if(GEMM_STEPS_BACKEND STREQUAL "gpu")
  gemm_add_library(gemm_backend HEADERS h FOLDERS harness/backend harness/backend/gpu ptx DEPENDS gemm_base)
else()
  gemm_add_library(gemm_backend HEADERS h FOLDERS harness/backend emulator/machine DEPENDS gemm_base)
endif()
gemm_add_library(gemm_verify HEADERS h FOLDERS harness/verify DEPENDS gemm_backend)
gemm_add_library(gemm_timing HEADERS h COLD harness/timing harness/timing/${GEMM_STEPS_BACKEND}
                 DEPENDS gemm_verify)
target_link_libraries(gemm_base PRIVATE fmt)
"""


class Layers(unittest.TestCase):
    def area(self, area):
        self.assertGreater(len(list(sources(ROOT, area if area == "steps" else f"common/{area}"))), 10)
        self.assertEqual("\n".join(problems(ROOT, area)), "")

    def test_the_harness_includes_what_its_libraries_depend_on(self):
        self.area("harness")

    def test_the_emulator_knows_of_the_harness_what_a_backend_implements(self):
        self.area("emulator")

    def test_the_instructions_include_nothing_above_them(self):
        self.area("ptx")

    def test_what_steps_share_includes_instructions_only(self):
        self.area("gemm")

    def test_a_step_includes_instructions_and_what_earlier_steps_taught(self):
        self.area("steps")

    def test_the_libraries_cover_every_folder_and_have_no_circle(self):
        libraries = Libraries((ROOT / "cmake" / "GemmLibraries.cmake").read_text(encoding="utf-8"))
        self.assertEqual(libraries.problems, [])
        self.assertGreater(len(libraries.below), 7)
        for top in ("harness", "emulator"):
            for path, folder in sources(ROOT, f"common/{top}"):
                if path.suffix in (".cpp", ".cu"):
                    self.assertIn(f"{top}/{folder}", libraries.folders, f"{path} belongs to no library")


class MadeUpLayers(unittest.TestCase):
    """The same checks on a small tree: each arrow that points up is found."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("cmake/GemmLibraries.cmake", LIBRARIES)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check(self, area, path, include, allowed):
        self.write(path, f'// comment\n#include <vector>\n#include "{include}"\n')
        expected = [] if allowed else [f'{path} must not include "{include}"']
        self.assertEqual(problems(self.root, area), expected)
        (self.root / path).unlink()

    def test_arrows_of_the_harness(self):
        for path, include, allowed in (
                ("verify/verify.cpp", "harness/base/problem.h", True),
                ("verify/verify.cpp", "harness/backend/backend.h", True),
                ("verify/verify.cpp", "harness/verify/verify.h", True),
                ("verify/verify.cpp", "ptx/launch_shape.h", True),
                ("verify/verify.cpp", "harness/timing/timing.h", False),
                ("verify/verify.cpp", "emulator/machine/machine.h", False),
                ("verify/verify.cpp", "01_naive/kernel.cuh", False),
                ("timing/timing.cpp", "harness/verify/verify.h", True),
                ("timing/gpu/nvml.h", "harness/verify/verify.h", True),
                ("timing/gpu/nvml.h", "harness/cli/cli.h", False),
                ("base/problem.h", "harness/backend/backend.h", True),  # the interface is below the base
                ("base/problem.h", "harness/verify/verify.h", False),
                ("backend/backend.h", "harness/base/problem.h", False),
                ("backend/watchdog.cpp", "harness/base/problem.h", True),
                ("backend/gpu/backend_gpu.cpp", "harness/base/problem.h", True),
                ("nowhere/file.h", "harness/base/problem.h", False)):
            with self.subTest(path=path, include=include):
                self.check("harness", f"common/harness/{path}", include, allowed)

    def test_arrows_of_the_others(self):
        for area, path, include, allowed in (
                ("emulator", "common/emulator/machine/a.cpp", "harness/backend/backend.h", True),
                ("emulator", "common/emulator/machine/a.cpp", "harness/base/problem.h", False),
                ("emulator", "common/emulator/include/ptx/a.cuh", "gemm/problem/bf16.h", True),
                ("ptx", "common/ptx/a.cuh", "gemm/problem/types.h", True),
                ("emulator", "common/emulator/machine/a.cpp", "cuda_runtime.h", False),
                ("emulator", "common/emulator/include/ptx/a.cuh", "gemm/pipeline/ring.cuh", False),
                ("ptx", "common/ptx/a.cuh", "ptx/b.cuh", True),
                ("ptx", "common/ptx/a.cuh", "harness/backend/backend.h", False),
                ("ptx", "common/ptx/a.cuh", "gemm/pipeline/ring.cuh", False),
                ("gemm", "common/gemm/a.cuh", "ptx/b.cuh", True),
                ("gemm", "common/gemm/a.cuh", "harness/backend/backend.h", False),
                ("steps", "steps/03_c/kernel.cuh", "gemm/pipeline/ring.cuh", True),
                ("steps", "steps/03_c/kernel.cuh", "03_c/choice.h", True),
                ("steps", "steps/03_c/kernel.cuh", "02_b/kernel.cuh", False),
                ("steps", "steps/03_c/kernel.cuh", "harness/base/problem.h", False),
                ("steps", "steps/03_c/kernel.cuh", "missing.h", False)):
            with self.subTest(path=path, include=include):
                self.check(area, path, include, allowed)

    def test_a_link_that_points_up(self):
        text = LIBRARIES + "target_link_libraries(gemm_base PUBLIC gemm_verify)\n"
        self.assertEqual(Libraries(text).problems, ["gemm_base links gemm_verify, which is not below it"])


class BitFunctions(unittest.TestCase):
    """nvcc takes std::countr_zero and its like in a kernel (--expt-relaxed-constexpr), and optimises as if they had no result."""

    CALL = re.compile(r"std::(countr|countl|popcount|rotl|rotr|has_single_bit|bit_width)\w*")

    def calls(self, text):
        return self.CALL.findall(re.sub(r"//.*", "", text))

    def test_no_kernel_calls_one(self):
        headers = [path for folder in ("common/gemm", "common/ptx", "steps") for path in (ROOT / folder).rglob("*.cuh")]
        self.assertGreater(len(headers), 60)
        self.assertEqual([], [path.name for path in headers if self.calls(path.read_text(encoding="utf-8"))])

    def test_a_call_is_found(self):
        self.assertEqual(["countr"], self.calls("log2_m(std::countr_zero(1u))"))
        self.assertEqual([], self.calls("// std::countr_zero gives no defined result"))
