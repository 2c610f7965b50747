"""What a race over many shapes adds up to: random ones (tools/compare --population), or any."""
import math

from program import UserError


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def population(record):
    """Numbers of each shape, in the record's order: `speed` of what chose by shape and `best` of the fastest variant, both
    relative to cuBLASLt; `regret`, the time of the choice over that of the fastest variant; `off_sectors`, the speed where K
    or N is an odd multiple of 8."""
    values = {"speed": [], "best": [], "regret": [], "off_sectors": []}
    for shape in record["shapes"]:
        chosen = next((c for c in shape["contestants"] if "choice" in c and c["to_cublaslt"]["median"]), None)
        if chosen is None:
            continue
        fastest = min((c for c in shape["contestants"] if c["name"] == chosen["name"]), key=lambda c: c["median_us"])
        values["speed"].append(chosen["to_cublaslt"]["median"])
        values["best"].append(fastest["to_cublaslt"]["median"])
        values["regret"].append(chosen["median_us"] / fastest["median_us"])
        if shape["k"] % 16 or shape["n"] % 16:
            values["off_sectors"].append(values["speed"][-1])
    if not values["speed"]:
        raise UserError("the record has no step that chose a variant and was compared with cuBLASLt.")
    return values


LAUNCH_US = 5.7  # an almost empty launch in this harness, on an H200 (docs/results/matrix_vector_h200.json)
DRAM_BYTES_PER_US = 4.48e6  # that a kernel reads which only reads, on an H200 (docs/memory-hierarchy.md)


def bound(shape):
    """What no kernel is much faster than, by arithmetic, in µs: a launch and the bytes of A, B and D at the memory's rate;
    the multiplications at the rate of the wgmma-only ceiling of the same run. And cuBLASLt's time over the larger: the
    highest speed relative to it. 0 where the record lacks one of the two."""
    times = {c["kind"] if c["kind"] == "ceiling" else c["name"]: c["median_us"] for c in shape["contestants"]}
    m, n, k = shape["m"], shape["n"], shape["k"]
    bytes_us = LAUNCH_US + 2 * (m * k + n * k + m * n) / DRAM_BYTES_PER_US
    ceiling_us, cublaslt_us = times.get("ceiling", 0), times.get("cublaslt_best", 0)
    return bytes_us, ceiling_us, cublaslt_us / max(bytes_us, ceiling_us) if ceiling_us else 0


def bounds(record):
    found = [bound(shape)[2] for shape in record["shapes"]]
    if not all(found):
        raise UserError("the record lacks cuBLASLt or the ceiling at a shape.")
    return found
