"""Reading the record of tools/roofline (docs/results/roofline_*.json)."""
import statistics

from program import UserError
from records import ROOT, load as load_checked, relative

DEFAULT = "docs/results/roofline_h200.json"
HOW_TO_MEASURE = ("build/gpu/bin/roofline --json docs/results/roofline_h200.json on the GPU, then tools/roofline_table.py "
                  "and tools/figures/draw_roofline.py")

# The published peak of a Hopper SM, dense bf16 (NVIDIA H100 Tensor Core GPU Architecture, 2022).
TENSOR_FLOP_PER_CLOCK = 4096


def tile_intensity(m, n):
    """FLOP for each byte of bf16 operands that an m x n tile takes in: 2 m n k FLOP over 2 (m + n) k bytes."""
    return m * n / (m + n)


class Roofline:
    """One record. Figures are found by name and parameters; what is missing is a UserError."""

    def __init__(self, path):
        self.path = path
        self.record = load_checked(path, "roofline")
        if self.record["quick"]:
            raise UserError(f"{relative(path)} is of a --quick run; measure without --quick.")
        wrong = [figure["name"] for figure in self.record["figures"] if figure["impossible"]]
        if wrong:
            raise UserError(f"{relative(path)} holds values that the hardware cannot have: {', '.join(wrong)}.")
        self.device = self.record["device"]
        self.used = []

    def figures(self, name, /, **parameters):
        return [figure for figure in self.record["figures"] if figure["name"] == name
                and all(figure["parameters"].get(key) == value for key, value in parameters.items())]

    def figure(self, name, /, **parameters):
        found = self.figures(name, **parameters)
        if len(found) != 1:
            words = "".join(f" {key}={value}" for key, value in parameters.items())
            raise UserError(f"the record {relative(self.path)} has {len(found)} figures {name}{words}; one is needed.")
        self.used.append(found[0])
        return found[0]

    def value(self, name, /, **parameters):
        return self.figure(name, **parameters)["median"]

    def best(self, name):
        """The figure of this name with the largest median."""
        found = self.figures(name)
        if not found:
            raise UserError(f"the record {relative(self.path)} has no figure {name}.")
        best = max(found, key=lambda figure: figure["median"])
        self.used.append(best)
        return best

    # What several tables and figures need. Bandwidths in TB/s, rates in TFLOP/s.

    def clock_ghz(self):
        return self.value("fma.clock") * 1e-3

    def sms(self):
        return self.device["sm_count"]

    def dram(self):
        return self.value("dram.read") * 1e-3

    def l2(self):
        """TB/s of working sets between a quarter and a half of the L2. Smaller ones are faster, because many SMs ask for
        the same lines at the same time; a GEMM's operands are not like that."""
        mib = self.device["l2_bytes"] / 2**20
        plateau = [figure["median"] for figure in self.figures("l2.read")
                   if mib / 4 <= figure["parameters"]["working_set_mib"] <= mib / 2]
        return (statistics.median(plateau) if plateau else self.best("l2.read")["median"]) * 1e-3

    def shared_per_clock(self):
        return self.value("shared.read", pattern="row", bytes_per_lane=16)

    def shared(self):
        return self.shared_per_clock() * self.sms() * self.clock_ghz() * 1e-3

    def per_clock_and_sm(self, terabytes_per_second):
        return terabytes_per_second * 1e3 / self.clock_ghz() / self.sms()

    def units(self):
        """(name, TFLOP/s, FLOP per clock and SM) of the units that were measured, slowest first."""
        rows = [("FFMA (fp32)", self.value("fma.throughput"), self.value("fma.rate"))]
        for name, title in (("mma_sync", "mma.sync (bf16)"), ("wgmma", "wgmma (bf16)")):
            if self.figures(name + ".rate"):
                best = self.best(name + ".rate")
                throughput = self.figure(name + ".throughput", **best["parameters"])
                rows.append((title, throughput["median"], best["median"]))
        return rows


def load(text):
    """The record at the path `text` from the repository's root."""
    path = ROOT / text
    if not path.exists():
        raise UserError(f"there is no {text}, which has the numbers: {HOW_TO_MEASURE}.")
    return Roofline(path)
