"""What a race over many shapes adds up to: random ones (tools/compare --population), or any."""
import csv
import functools
import io
import math

from program import UserError
from records import ROOT, read_text, relative

# A line for each race over random shapes that is no longer there as a record.
HISTORY = ROOT / "docs/results/populations.csv"
ABOUT = ("name", "device", "date", "commit", "seed", "mode")
WORST = {"speed": min, "tuned": min, "best": min, "off_sectors": min, "regret": max}  # the worst of population()'s numbers
SUMMARY = ("count", "geometric_mean", "tenth", "worst")
COLUMNS = [*ABOUT, *(f"{key}_{what}" for key in WORST for what in SUMMARY)]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def population(record):
    """Numbers of each shape, in the record's order: `speed` of what chose by shape, `tuned` of what --autotune would have
    remembered and `best` of the fastest variant, all relative to cuBLASLt; `regret`, the time of the choice over that of the fastest variant; `off_sectors`, the speed where K
    or N is an odd multiple of 8. A race in which no other variant ran has neither `best` nor `regret`."""
    values = {key: [] for key in WORST}
    for shape in record["shapes"]:
        chosen = next((c for c in shape["contestants"] if "choice" in c and c["to_cublaslt"]["median"]), None)
        if chosen is None:
            continue
        variants = [c for c in shape["contestants"] if c["name"] == chosen["name"]]
        values["speed"].append(chosen["to_cublaslt"]["median"])
        if "tuned" in shape:  # where it is what the model chose, it ran once, under the name of the choice
            tuned = next((c for c in variants if c["variant"] == shape["tuned"] != chosen["choice"]["variant"]), chosen)
            values["tuned"].append(tuned["to_cublaslt"]["median"])
        if len(variants) > 1:
            fastest = min(variants, key=lambda c: c["median_us"])
            values["best"].append(fastest["to_cublaslt"]["median"])
            values["regret"].append(chosen["median_us"] / fastest["median_us"])
        if shape["k"] % 16 or shape["n"] % 16:
            values["off_sectors"].append(values["speed"][-1])
    if not values["speed"]:
        raise UserError("the record has no step that chose a variant and was compared with cuBLASLt.")
    return values


CLASSES = ((0, 10), (10, 100), (100, 1000), (1000, math.inf))  # of work, in GFLOP


def by_work(record):
    """For each of CLASSES with a shape, its bounds and the speeds of what chose by shape: as they are, and with the time of a
    launch taken off both sides."""
    found = {}
    for shape in record["shapes"]:
        chosen = next((c for c in shape["contestants"] if "choice" in c and c["to_cublaslt"]["median"]), None)
        reference = next((c for c in shape["contestants"] if c["name"] == "cublaslt_best"), None)
        if chosen is None or reference is None:
            continue
        work = 2e-9 * shape["m"] * shape["n"] * shape["k"]
        bounds = next(one for one in CLASSES if one[0] <= work < one[1])
        speeds, launched = found.setdefault(bounds, ([], []))
        speeds.append(chosen["to_cublaslt"]["median"])
        launched.append((reference["median_us"] - LAUNCH_US) / (chosen["median_us"] - LAUNCH_US))
    return dict(sorted(found.items()))


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


def summary(numbers, worst=min):
    """What a distribution adds up to: SUMMARY of it."""
    if not numbers:
        raise UserError("the race over random shapes has no such numbers: no other variant ran, or no shape is of this kind.")
    ordered = sorted(numbers, reverse=worst is max)
    return {"count": len(ordered), "geometric_mean": geometric_mean(ordered), "tenth": ordered[len(ordered) // 10], "worst": ordered[0]}


def line_of(name, record):
    """The line of a record in HISTORY."""
    if "population_seed" not in record:
        raise UserError(f"{name} was not timed at random shapes (tools/compare --population).")
    line = {"name": name, "device": record["device"]["name"], "seed": record["population_seed"],
            **{key: record[key] for key in ("date", "commit", "mode")}}
    for key, numbers in population(record).items():
        for what, value in (summary(numbers, WORST[key]) if numbers else {"count": 0}).items():
            line[f"{key}_{what}"] = value if what == "count" else f"{value:.6g}"
    return line


@functools.cache
def history():
    """{name: line} of HISTORY, in its order; numbers are numbers. UserError names what is wrong with it."""
    if not HISTORY.exists():
        return {}
    rows = csv.DictReader(io.StringIO(read_text(HISTORY, "the history")), strict=True)
    try:
        lines = list(rows)
    except csv.Error as error:
        raise UserError(f"{relative(HISTORY)} is damaged: {error}.") from None
    if rows.fieldnames != COLUMNS:
        raise UserError(f"{relative(HISTORY)} is damaged: its first line must be {','.join(COLUMNS)}.")
    found = {}
    for number, line in enumerate(lines, 2):
        if None in line or None in line.values() or line["name"] in found:
            raise UserError(f"{relative(HISTORY)} is damaged: line {number} has too few or too many values, or its name occurs twice.")
        found[line["name"]] = {key: _number(line, key, number) if key.startswith(tuple(WORST)) else text for key, text in line.items()}
    return found


def _number(line, key, number):
    """None where there were no such shapes."""
    text, of = line[key], line[f"{key.removesuffix('_' + next(what for what in SUMMARY if key.endswith(what)))}_count"]
    if key.endswith("_count") and text.isascii() and text.isdigit():
        return int(text)
    if not text and of == "0":
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if key.endswith("_count") or not 0 < value <= 10000:
        raise UserError(f"{relative(HISTORY)} is damaged: in line {number}, {key} is '{text}', which is not such a number.")
    return value


def with_lines(lines):
    """The text of HISTORY with these lines, each in the place of one of the same name or at the end; by date."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    merged = {**history(), **{line["name"]: line for line in lines}}
    writer.writerows(sorted(merged.values(), key=lambda line: (line["date"], line["name"])))
    return text.getvalue()


def bounds(record):
    found = [bound(shape)[2] for shape in record["shapes"]]
    if not all(found):
        raise UserError("the record lacks cuBLASLt or the ceiling at a shape.")
    return found
