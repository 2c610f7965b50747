#!/usr/bin/env python3
"""Writes the tables of measured hardware limits into the docs, from the record of tools/roofline.

Usage: tools/roofline_table.py [--check] [FILE.md ...]

A table stands between two markers; what is between them is replaced:
  <!-- roofline: NAME [record=docs/results/FILE.json] -->
  <!-- /roofline -->
NAME is hierarchy, ridges, tiles, warp_tiles, wgmma_shapes, in_flight, l2, arithmetic, loads, conflicts, ldmatrix, overheads,
launches, or layouts, which needs no record. The record is docs/results/roofline_h200.json unless named; while the file is missing the
table says so. Without files: README.md, CONTRIBUTING.md, docs/**/*.md and steps/*/README.md. --check changes nothing and
fails if a table and its record differ.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # noqa: F401 (first, for Ctrl-C)
import blocks
import roofline_record
from blocks import markdown
from program import UserError
from record_rules import rounds_of
from records import nearest, relative
from roofline_record import TENSOR_FLOP_PER_CLOCK, tile_intensity
from shared_banks import copy_row_store, ldmatrix_x4, tile_bytes, wavefronts


def digits(value, count=3):
    """`count` significant digits, never an exponent."""
    if not value:
        return "–"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, count - whole)}f}"


def binary(size):
    """Bytes in KiB, MiB or GiB."""
    for unit, power in (("GiB", 30), ("MiB", 20)):
        if size >= 1 << power:
            return f"{digits(size / (1 << power))} {unit}"
    return f"{digits(size / 1024)} KiB"


def caption(record, note=""):
    spread = max(((figure["q3"] - figure["q1"]) / 2 / figure["median"] for figure in record.used), default=0)
    run = record.record
    return ["", f"{note}{record.device['name']}, {record.sms()} SMs at {1e3 * record.clock_ghz():.0f} MHz, medians of "
                f"{run['rounds']} rounds with quartiles within ±{100 * spread:.1g} %, "
                f"{run['date'][:10]}, commit {run['commit']}; from `{relative(record.path)}`."]


def hierarchy(record):
    device, clock = record.device, record.clock_ghz()

    def row(name, size, per_clock, total, clocks):
        return [name, size, digits(per_clock), digits(total), digits(clocks), digits(clocks / clock)]

    l1 = record.best("l1.read")["median"]
    l2_latency = record.value("latency.l2", working_set_mib=4)
    dram_latency = record.value("latency.dram", region_mib=256)
    rows = [
        row("registers", f"{binary(4 * device['registers_per_sm'])} per SM", 0, 0, record.value("latency.ffma")),
        row("shared memory", f"{binary(device['shared_bytes_per_sm'])} per SM", record.shared_per_clock(),
            record.shared(), record.value("latency.shared")),
        row("L1", "what shared memory leaves of the same array", l1, l1 * record.sms() * clock * 1e-3,
            record.value("latency.l1")),
        row("L2", binary(device["l2_bytes"]), record.per_clock_and_sm(record.l2()), record.l2(), l2_latency),
        row("device memory, read", binary(device["memory_bytes"]), record.per_clock_and_sm(record.dram()),
            record.dram(), dram_latency),
    ]
    for name in ("write", "copy"):
        rate = record.value("dram." + name) * 1e-3
        rows.append(row(f"device memory, {name}", "", record.per_clock_and_sm(rate), rate, 0))
    return markdown(["level", "size", "bytes/clock/SM", "TB/s, all SMs", "latency (clocks)", "latency (ns)"],
                    [False, False, True, True, True, True], rows) + caption(
        record, "The latency of registers is that of an FFMA that needs the result of the one before. ")


def ridges(record):
    units = record.units()
    rows = []
    for name, rate in (("device memory", record.dram()), ("L2", record.l2()), ("shared memory", record.shared())):
        rows.append([name, digits(rate)] + [digits(throughput / rate) for _, throughput, _ in units])
    headings = ["bytes from", "TB/s"] + [f"{name}, {digits(throughput)} TFLOP/s" for name, throughput, _ in units]
    return markdown(headings, [False] + [True] * (len(headings) - 1), rows) + caption(
        record, "The number of FLOP per byte above which the unit, and not the level, is the limit. ")


def tiles(record):
    units = record.units()[1:]
    supply = record.per_clock_and_sm(record.l2())
    rows = []
    for m, n in ((16, 16), (32, 32), (64, 64), (128, 128), (128, 256), (256, 256)):
        intensity = tile_intensity(m, n)
        rows.append([f"{m}×{n}", digits(intensity)] + [digits(rate / intensity) for _, _, rate in units] +
                    [digits(intensity * record.l2())])
    headings = ["tile of D", "FLOP/byte"] + [f"{name} needs (bytes/clock/SM)" for name, _, _ in units] + [
        "the L2 feeds (TFLOP/s)"]
    return markdown(headings, [False] + [True] * (len(headings) - 1), rows) + caption(
        record, f"The L2 delivers {digits(supply)} bytes/clock/SM. ")


def warp_tiles(record):
    best = record.best("mma_sync.rate")["median"]
    rows = []
    for m, n in ((16, 8), (32, 32), (64, 32), (64, 64), (128, 64)):
        wanted = best / tile_intensity(m, n)
        accumulators = m * n // 32
        rows.append([f"{m}×{n}", str(accumulators), digits(tile_intensity(m, n)), digits(wanted),
                     f"{100 * wanted / record.shared_per_clock():.0f} %"])
    return markdown(["part of a warp", "accumulators per thread", "FLOP/byte", "mma.sync needs (bytes/clock/SM)",
                     "of shared memory"], [False, True, True, True, True], rows) + caption(record)


def wgmma_shapes(record):
    rows = []
    for n in (32, 64, 128, 256):
        wanted = TENSOR_FLOP_PER_CLOCK / tile_intensity(64, n)
        rows.append([f"m64n{n}k16", digits(tile_intensity(64, n)), digits(wanted),
                     f"{100 * wanted / record.shared_per_clock():.0f} %"])
    return markdown(["instruction", "FLOP/byte", "bytes/clock/SM at full rate", "of shared memory"],
                    [False, True, True, True], rows) + caption(
        record, f"Full rate is {TENSOR_FLOP_PER_CLOCK} FLOP/clock/SM, both operands in shared memory. ")


def in_flight(record):
    rows = []
    for name, rate, latency in (("L2", record.l2(), record.value("latency.l2", working_set_mib=4)),
                                ("device memory", record.dram(), record.value("latency.dram", region_mib=256))):
        per_clock = record.per_clock_and_sm(rate)
        rows.append([name, digits(per_clock), digits(latency), binary(per_clock * latency)])
    return markdown(["level", "bytes/clock/SM", "latency (clocks)", "in flight on each SM"],
                    [False, True, True, True], rows) + caption(record)


def l2(record):
    latencies = {figure["parameters"]["working_set_mib"]: figure for figure in record.figures("latency.l2")}
    rows = []
    for figure in record.figures("l2.read"):
        size = figure["parameters"]["working_set_mib"]
        record.used.append(figure)
        latency = latencies.get(size)
        if latency:
            record.used.append(latency)
        rows.append([f"{size} MiB", digits(figure["median"] * 1e-3), digits(latency["median"]) if latency else "–"])
    return markdown(["working set", "read by all SMs (TB/s)", "latency from one SM (clocks)"], [False, True, True],
                    rows) + caption(record) + near_and_far(record)


def near_and_far(record):
    """A sentence on single lines, if they were measured: two groups or not."""
    lines = record.figures("latency.l2_line.near")
    if not lines:
        return []
    near, far = lines[0], record.figure("latency.l2_line.far")
    by_sm = record.figure("latency.l2_line.by_sm")
    parameters = near["parameters"]
    text = (f"Single lines that hit, seen from one SM: {near['lowest']:.0f} to {far['highest']:.0f} clocks. "
            f"The medians of the {parameters['sms']} SMs lie between {by_sm['lowest']:.0f} and "
            f"{by_sm['highest']:.0f} clocks. ")
    # A bell curve split in two has 0.64 of its variance between the halves, evenly spread values 0.75.
    if parameters["variance_between_groups"] >= 0.85:
        text += (f"They form two groups, {rounds_of(near)} near lines with a median of {near['median']:.0f} clocks "
                 f"and {rounds_of(far)} far ones with {far['median']:.0f}; "
                 f"{parameters['sms_that_see_the_opposite']} of the {parameters['sms']} SMs see the two groups the other "
                 f"way round.")
    else:
        text += "They do not fall into two groups."
    return ["", text]


def arithmetic(record):
    rows = []
    for name, parameter, title in (("fma", "warps", "FFMA, {} warps per SM"), ("mma_sync", "warps",
                                   "mma.sync m16n8k16, {} warps per SM"),
                                   ("wgmma", "warpgroups", "wgmma m64n256k16, {} warpgroup(s) per SM")):
        for figure in record.figures(name + ".rate"):
            parameters = figure["parameters"]
            record.used.append(figure)
            throughput = record.value(name + ".throughput", **parameters)
            clock = record.value(name + ".clock", **parameters)
            share = "–" if name == "fma" else f"{100 * figure['median'] / TENSOR_FLOP_PER_CLOCK:.0f} %"
            rows.append([title.format(parameters[parameter]), digits(figure["median"], 4), share, digits(throughput),
                         f"{clock:.0f}"])
    return markdown(["instruction", "FLOP/clock/SM", f"of {TENSOR_FLOP_PER_CLOCK}", "TFLOP/s", "SM clock (MHz)"],
                    [False, True, True, True, True], rows) + caption(
        record, f"Operands in registers (wgmma: in shared memory), {record.record['idle_ms']:g} ms idle before each run. ")


SOURCES = {"memory": "its own k-tiles", "l2": "the same 16 k-tiles, which the L2 has", "one tile": "those of one tile, for all CTAs",
           "nowhere": "nothing"}


def loads(record):
    figures = record.figures("loads.time")
    record.used += figures
    whole = record.value("loads.time", a="memory", b="memory")
    rows = []
    for figure in figures:
        parameters = figure["parameters"]
        rows.append([SOURCES[parameters["a"]], SOURCES[parameters["b"]], f"{figure['median'] / whole:.3f}",
                     f"{record.value('loads.k_tile', **parameters):.0f}", f"{record.value('loads.clock', **parameters):.0f}"])
    return markdown(["loaded of A", "loaded of B", "time", "clocks per k-tile", "SM clock (MHz)"], [False, False, True, True, True],
                    rows) + caption(record, f"{record.record['idle_ms']:g} ms idle before each run. ")


def pattern_name(parameters):
    width = f"{parameters['bytes_per_lane']} bytes"
    ways = parameters.get("conflict_ways")
    return {
        "row": f"{width}, neighbouring lanes neighbouring addresses",
        "broadcast": f"{width}, all lanes the same word",
        "stride": f"{width}, lanes {ways} words apart",
        "column": f"{width}, lanes down a column of rows of 128 bytes",
    }[parameters["pattern"]]


def clocks_row(record, name, title, parameters):
    rate = record.value(name, **parameters)
    clocks = record.value(name + ".clocks", **parameters)
    return [title, str(parameters["expected_wavefronts"]), f"{clocks:.1f}", f"{rate:.1f}"]


HEADINGS = ["wavefronts by the rules", "measured clocks per instruction", "bytes/clock/SM"]


def conflicts(record):
    rows = [clocks_row(record, "shared.read", pattern_name(figure["parameters"]), figure["parameters"])
            for figure in record.figures("shared.read")]
    return markdown(["ld.shared of", *HEADINGS], [False, True, True, True], rows) + caption(record)


def ldmatrix(record):
    rows = [clocks_row(record, "ldmatrix", f"{figure['parameters']['layout']}, rows of "
                       f"{figure['parameters']['row_bytes']} bytes", figure["parameters"])
            for figure in record.figures("ldmatrix")]
    return markdown(["ldmatrix.x4 from a tile", *HEADINGS], [False, True, True, True], rows) + caption(record)


def overheads(record):
    rows = [[f"`__syncthreads` of {figure['parameters']['threads']} threads", f"{digits(figure['median'])} clocks"]
            for figure in record.figures("barrier")]
    record.used += record.figures("barrier")
    rows.append(["one of many launches in a row", f"{digits(record.value('launch.back_to_back'))} µs"])
    rows.append(["a launch, until the host knows that it is over", f"{digits(record.value('launch.and_wait'))} µs"])
    return markdown(["", "cost"], [False, True], rows) + caption(record)


def launches(record):
    rows = []
    for figure in record.figures("launch.between_events", before="nothing"):
        stores = figure["parameters"]["stores"]
        rows.append(["an empty kernel" if stores == "nothing" else f"a kernel that stores {stores} of each CTA", digits(figure["median"]),
                     digits(record.value("launch.between_events", stores=stores, before="a kernel that waits"))])
        record.used.append(figure)
    return markdown(["one launch between two events", "on an idle GPU (µs)", "behind a kernel that waits (µs)"], [False, True, True],
                    rows) + caption(record, f"{record.record['idle_ms']:g} ms idle before each run; 384 threads on every SM. ")


def layouts():
    rows = []
    for row_bytes in (128, 64):
        for layout in ("plain", "padded", "swizzled"):
            size = tile_bytes(layout, row_bytes, 128)
            rows.append([f"{layout}, rows of {row_bytes} bytes", f"{size}",
                         str(wavefronts(ldmatrix_x4(layout, row_bytes), 16)),
                         str(wavefronts(copy_row_store(layout, row_bytes), 16))])
    return markdown(["tile of 128 rows", "bytes", "wavefronts of one ldmatrix.x4",
                     "wavefronts of one 16-byte store of a warp"], [False, True, True, True], rows) + [
        "", "Computed from the rules above by `tools/lib/shared_banks.py`; 4 is the least for 512 bytes."]


TABLES = {"hierarchy": hierarchy, "ridges": ridges, "tiles": tiles, "warp_tiles": warp_tiles,
          "wgmma_shapes": wgmma_shapes, "in_flight": in_flight, "l2": l2, "arithmetic": arithmetic, "loads": loads,
          "conflicts": conflicts, "ldmatrix": ldmatrix, "overheads": overheads, "launches": launches}


def make_table(specification, _document):
    words = specification.split()
    name = words[0] if words else ""
    if name != "layouts" and name not in TABLES:
        raise UserError(f"there is no table '{name}'; {nearest(name, [*TABLES, 'layouts'])}")
    path = roofline_record.DEFAULT
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key != "record":
            raise UserError(f"'{word}' is not an option of a table; the only one is record=docs/results/FILE.json.")
        path = value
    if name == "layouts":
        return layouts()
    return TABLES[name](roofline_record.load(path))


if __name__ == "__main__":
    sys.exit(blocks.run("tools/roofline_table.py", __doc__, {"roofline": make_table}, "a table differs from its record"))
