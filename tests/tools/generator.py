"""The generators of tables and figures in an empty repository, with a record that a test makes up."""
import contextlib
import fcntl
import functools
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lib"))
import record_rules  # noqa: E402 (the path comes first)

DEVICE = {"name": "Test GPU", "is_emulator": False, "compute_capability": 90, "sm_count": 100, "max_threads_per_sm": 2048,
          "max_ctas_per_sm": 32, "registers_per_sm": 65536, "shared_bytes_per_sm": 233472, "shared_bytes_per_cta": 232448,
          "reserved_shared_bytes": 1024, "l2_bytes": 50 << 20, "memory_bytes": 140 << 30, "memory_free_bytes": 139 << 30,
          "clock_hz": 2e9, "memory_bytes_per_second": 4e12, "driver_version": "13.0", "runtime_version": "13.0"}
CONDITIONS = {"sm_clock_mhz_min": 1800, "sm_clock_mhz_median": 1905, "sm_clock_mhz_max": 1980, "power_w_median": 512,
              "power_w_max": 611, "temperature_c_max": 55, "throttle_reasons": ["power cap"]}
NOTHING_SEEN = {key: [] if key == "throttle_reasons" else 0 for key in CONDITIONS}


def contestant(name, kind, tflops, variant=""):
    """One that is as fast as that; its samples are made when it stands in a shape."""
    return {"name": name, "variant": variant, "kind": kind, "tflops": tflops}


def derive(shape):
    """Fills what follows from the samples, as the harness does."""
    contestants = shape["contestants"]
    for one in contestants:
        samples = one["samples_us"]
        one.update({name: record_rules.quantile(samples, p) for name, p in (("median_us", 0.5), ("q1_us", 0.25), ("q3_us", 0.75))})
        one["tflops"] = record_rules.tflops(shape, one["median_us"])
    reference = next((one for one in contestants if one["name"] == "cublaslt_best"), None)
    ceiling = next((one for one in contestants if one["kind"] == "ceiling"), None)
    for one in contestants:
        ratios = reference and [a / b for a, b in zip(reference["samples_us"], one["samples_us"])]
        one["to_cublaslt"] = record_rules.median_interval(ratios) if ratios else {"median": 0, "low": 0, "high": 0}
        one["verdict"] = record_rules.verdict(one["to_cublaslt"], len(ratios)) if ratios else "AMBIGUOUS"
        one["ceiling_share"] = one["tflops"] / ceiling["tflops"] if ceiling else 0
    return shape


def shape(m, n, k, contestants, samples=1):
    """A timed shape: of every contestant as many samples, all the same."""
    made = {"m": m, "n": n, "k": k, "rotated_buffers": 2, "conditions": dict(CONDITIONS), "contestants": contestants}
    for one in contestants:
        one["samples_us"] = [2 * m * n * k / one["tflops"] / 1e6] * samples
    return derive(made)


def set_tflops(shape, index, tflops):
    """The contestant at `index` was as fast as that."""
    one = shape["contestants"][index]
    one["samples_us"] = [2 * shape["m"] * shape["n"] * shape["k"] / tflops / 1e6] * len(one["samples_us"])
    derive(shape)


def timed(shapes, **fields):
    return {"schema": 1, "device": dict(DEVICE), "cublas_version": "13.1", "commit": "abc1234", "date": "2025-01-02T03:04:05Z",
            "seed": 1, "pattern": "normal", "mode": "burst", "idle_ms": 15,
            "rounds": max(len(one["contestants"][0]["samples_us"]) for one in shapes), "shapes": shapes, **fields}


@functools.cache
def timelines(*names):
    """{name: file} of timelines of the model (RECORDED of draw_trace.py), which this build's programs record where a test is the
    first to want them, or a program is newer. Raises unittest.SkipTest without the programs."""
    sys.path.append(str(ROOT / "tools/figures"))
    import draw_trace
    draw_trace.BUILD = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", draw_trace.BUILD))

    def program(name):
        return next(draw_trace.BUILD.glob(f"bin/{draw_trace.step_of(name)}_*"), None)

    for name in names:
        if not program(name):
            raise unittest.SkipTest(f"step {draw_trace.step_of(name)} is not built in {draw_trace.BUILD}")
    draw_trace.run_command = lambda name: [str(program(name))]
    (draw_trace.BUILD / "traces").mkdir(exist_ok=True)
    paths = {}
    # Tests that run at the same time record each of them once: first those that no other test is at, then they wait for the rest.
    for how in (fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX):
        for name in [name for name in names if name not in paths]:
            with (open(draw_trace.BUILD / f"traces/{name}.lock", "w", encoding="utf-8") as lock, contextlib.suppress(BlockingIOError),
                  contextlib.redirect_stdout(io.StringIO())):
                fcntl.flock(lock, how)
                paths[name] = draw_trace.recording(name)
    return paths


@functools.cache
def python_with(package):
    """A Python that has the package: this one, or that of the repository's environment, which is made on first use. Raises
    unittest.SkipTest without one."""
    found = subprocess.run(
        [sys.executable, "-c", "import environment, sys\n"
         f"print(sys.executable if environment.has('{package}') else environment.ensure('{package}'))"],
        cwd=ROOT / "tools/lib", capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise unittest.SkipTest(f"no {package} here: {found.stderr.strip().splitlines()[-1]}")
    return found.stdout.strip()


class TimelineTest(unittest.TestCase):
    """Of timelines(): tests/CMakeLists.txt gives its tests the steps' programs."""


class GeneratorTest(unittest.TestCase):
    """Each test gets its own folder: self.root with a copy of the tools, self.record to write to."""

    RECORD = "docs/results/run.json"

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gemm-steps-test."))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("tools", "docs/schemas"):
            shutil.copytree(ROOT / folder, self.root / folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.record = self.root / self.RECORD
        self.record.parent.mkdir(parents=True)

    def write(self, record):
        self.record.write_text(json.dumps(record))

    def run_tool(self, tool, *arguments, python=None):
        """Runs tools/TOOL; returns the completed process, output as text."""
        python = python or python_with("jsonschema")
        return subprocess.run([python, "-B", f"tools/{tool}", *map(str, arguments)], cwd=self.root, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)

    def python_with_matplotlib(self):
        """The Python of the real repository's environment; skips the test without one."""
        return python_with("matplotlib")
