#!/usr/bin/env python3
"""Draws the memory hierarchy and the roofline of the H200: docs/figures/hierarchy.svg and docs/figures/roofline.svg.

Every number comes from docs/results/roofline_h200.json.
"""
from drawing import Drawing, figure_program
import math

import roofline_record
from palette import BLUE, GREEN, GRID, GROUND, INK, ORANGE, RED, SOFT, WHITE
from roofline_record import tile_intensity


def significant(value):
    whole = len(str(int(value))) if value >= 1 else 0
    return f"{value:.{max(0, 3 - whole)}f}"


def origin(record):
    run = record.record
    return f"{record.device['name']}, {run['date'][:10]}, commit {run['commit']}, medians of {run['rounds']} rounds"


def draw_hierarchy():
    """The levels as boxes that get wider and slower downwards."""
    record = roofline_record.load(roofline_record.DEFAULT)
    levels = [  # name, what it is, colour
        ("Registers", "per thread; operands and accumulators of mma.sync, accumulators of wgmma", GREEN),
        ("Shared memory and L1", "per SM, one array; operands of wgmma, tiles of a CTA", BLUE),
        ("L2", "all SMs; tiles that neighbouring CTAs read again", ORANGE),
        ("Device memory (HBM)", "the matrices", RED),
    ]
    device, clock = record.device, record.clock_ghz()
    sizes = [f"{4 * device['registers_per_sm'] // 1024} KiB per SM",
             f"{device['shared_bytes_per_sm'] // 1024} KiB of shared memory per SM",
             f"{device['l2_bytes'] >> 20} MiB", f"{round(device['memory_bytes'] / 2**30)} GiB"]
    rates = ["", *(f"{significant(rate)} TB/s = {significant(record.per_clock_and_sm(rate))} bytes/clock/SM"
                   for rate in (record.shared(), record.l2(), record.dram()))]
    clocks = [record.value("latency.ffma"), record.value("latency.shared"),
              record.value("latency.l2", working_set_mib=4), record.value("latency.dram", region_mib=256)]
    latencies = [f"{value:.0f} clocks = {significant(value / clock)} ns" for value in clocks]
    box, gap, width = 66, 46, 820
    height = 44 + len(levels) * box + (len(levels) - 1) * gap + 40
    drawing = Drawing(width, height, "The memory hierarchy of the GPU",
                      "Registers, shared memory and L1, L2 and device memory with size, bandwidth and latency.")
    sentence = (f"Each level below is larger and slower: for each clock an SM gets {record.per_clock_and_sm(record.shared()):.0f} bytes from "
                f"shared memory, {record.per_clock_and_sm(record.l2()):.0f} from the L2 and {record.per_clock_and_sm(record.dram()):.0f} "
                "from device memory.")
    drawing.caption("What a GEMM's operands pass on their way to the tensor cores", sentence, 24, room=30)
    y = 44
    for i, (name, what, color) in enumerate(levels):
        inset = 150 - 50 * i
        drawing.rect(24 + inset, y, width - 48 - 2 * inset, box, WHITE, stroke=color, stroke_width=2, rx=6)
        drawing.text(width / 2, y + 22, f"{name} · {sizes[i]}", size=13, anchor="middle", weight="bold")
        drawing.text(width / 2, y + 40, what, size=11, fill=SOFT, anchor="middle")
        lead = "FFMA after FFMA" if i == 0 else "latency of a load"
        drawing.text(width / 2, y + 57, f"{lead}: {latencies[i]}", size=11, anchor="middle")
        if i + 1 < len(levels):
            middle = width / 2 - 130
            drawing.line(middle, y + box + gap - 4, middle, y + box + 10, stroke=levels[i + 1][2], width=3)
            drawing.polygon([(middle - 6, y + box + 12), (middle + 6, y + box + 12), (middle, y + box + 3)],
                            levels[i + 1][2])
            drawing.text(middle + 16, y + box + gap / 2 + 4, rates[i + 1], size=12)
        y += box + gap
    drawing.text(24, height - 16, origin(record), size=11, fill=SOFT)
    return drawing.svg()


def draw_roofline():
    """Attainable TFLOP/s over FLOP per byte, both axes logarithmic."""
    record = roofline_record.load(roofline_record.DEFAULT)
    left, top, width, plot_height = 64, 44, 720, 400
    drawing = Drawing(left + width + 40, top + plot_height + 90, "Roofline of the GPU",
                      "Attainable TFLOP/s over arithmetic intensity for the bandwidths of device memory, L2 and shared "
                      "memory and the peaks of FFMA, mma.sync and wgmma, with the intensities of tiles of 16 to 256.")
    drawing.caption("Roofline: what each level can feed, and what the units can do",
                    f"A dot is what the L2 can feed when every tile takes its operands from it: {tile_intensity(128, 256) * record.l2():.0f} "
                    f"TFLOP/s for tiles of 128 × 256, where wgmma does {record.units()[-1][1]:.0f}.", room=30)
    low_x, high_x, low_y, high_y = 2.0, 2048.0, 4.0, 2000.0

    def x_of(intensity):
        return left + width * math.log(intensity / low_x) / math.log(high_x / low_x)

    def y_of(rate):
        return top + plot_height * (1 - math.log(rate / low_y) / math.log(high_y / low_y))

    for power in range(1, 12):
        x = x_of(2.0**power)
        drawing.line(x, top, x, top + plot_height, stroke=GRID)
        drawing.text(x, top + plot_height + 18, str(2**power), size=11, fill=SOFT, anchor="middle")
    for rate in (5, 10, 20, 50, 100, 200, 500, 1000):
        drawing.line(left, y_of(rate), left + width, y_of(rate), stroke=GRID)
        drawing.text(left - 8, y_of(rate) + 4, str(rate), size=11, fill=SOFT, anchor="end")
    drawing.text(left + width / 2, top + plot_height + 40, "FLOP for each byte taken from the level", size=12,
                 anchor="middle")
    drawing.text(18, top + plot_height / 2, "TFLOP/s", size=12, anchor="middle", rotate=-90)
    units = record.units()
    peak = units[-1][1]
    for name, bandwidth, color in (("shared memory", record.shared(), BLUE), ("L2", record.l2(), ORANGE),
                                   ("device memory", record.dram(), RED)):
        start = max(low_x, low_y / bandwidth)
        end = min(high_x, peak / bandwidth)
        drawing.polyline([(x_of(start), y_of(start * bandwidth)), (x_of(end), y_of(end * bandwidth))], color, 2.5)
        # Above the line and along its slope, where only the other levels' lines are.
        at = 180 / bandwidth
        angle = -math.degrees(math.atan2(y_of(1) - y_of(2), x_of(2) - x_of(1)))
        drawing.text(x_of(at), y_of(at * bandwidth) - 7, f"{name} {significant(bandwidth)} TB/s", size=12, fill=color,
                     anchor="middle", rotate=angle)
    for name, rate, _ in units:
        start = rate / record.shared()
        drawing.polyline([(x_of(max(start, low_x)), y_of(rate)), (x_of(high_x), y_of(rate))], INK, 2)
        drawing.text(x_of(high_x) - 4, y_of(rate) - 6, f"{name} {significant(rate)} TFLOP/s", size=12, anchor="end")

    for m, n in ((16, 16), (32, 32), (64, 64), (128, 128), (128, 256)):
        intensity = tile_intensity(m, n)
        reached = intensity * record.l2()
        x = x_of(intensity)
        drawing.line(x, y_of(reached), x, top + plot_height, stroke=SOFT, dashes="3 3")
        drawing.circle(x, y_of(reached), 4.5, ORANGE, stroke=GROUND)
        drawing.text(x - 5, top + plot_height - 8, f"tile {m}×{n}", size=11, fill=SOFT, rotate=-90)
    drawing.text(left, top + plot_height + 62, origin(record), size=11, fill=SOFT)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {
        "docs/figures/hierarchy.svg": draw_hierarchy,
        "docs/figures/roofline.svg": draw_roofline,
    })
