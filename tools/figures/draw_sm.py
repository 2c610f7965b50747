#!/usr/bin/env python3
"""Draws one SM of an H200 with the numbers that the chapters use: docs/figures/sm.svg.

Measured numbers come from docs/results/roofline_h200.json, and the model's (docs/timelines.md) from the timeline of step 15,
which is recorded first where it is missing.
"""
import draw_trace
import roofline_record
from drawing import Drawing, figure_program
from figure_data import load_timeline
from palette import BLUE, GREEN, INK, LIGHT, ORANGE, RED, SOFT, WHITE

FIGURE = "docs/figures/sm.svg"
TILE_M, TILE_N, TILE_K = 128, 256, 64
QUARTERS = 4


def model():
    """The constants of the model that draws the timelines."""
    return {entry["name"]: entry["value"] for entry in load_timeline(draw_trace.recording("15"))["otherData"]["model"]}


def facts():
    """Every number of the figure, as it is printed."""
    record, constants = roofline_record.load(roofline_record.DEFAULT), model()
    device = record.device
    k_tile = 2 * TILE_K * (TILE_M + TILE_N)
    scattered, merged = record.per_clock_and_sm(record.l2()), constants["copies"]
    return {
        "gpu": device["name"], "sms": device["sm_count"], "clock": f"{device['clock_hz'] / 1e6:.0f} MHz",
        "registers": f"{device['registers_per_sm'] // QUARTERS:,}", "all_registers": f"{device['registers_per_sm']:,}",
        "flop": roofline_record.TENSOR_FLOP_PER_CLOCK, "flop_of_one": roofline_record.TENSOR_FLOP_PER_CLOCK // QUARTERS,
        "shared": f"{device['shared_bytes_per_cta'] // 1024} KB", "array": "256 KB",
        "shared_rate": f"{record.shared_per_clock():.0f}", "shared_latency": f"{record.value('latency.shared'):.0f}",
        "l2": f"{device['l2_bytes'] >> 20} MiB", "l2_scattered": f"{scattered:.1f}", "l2_merged": f"{merged:.0f}",
        "l2_latency": f"{record.value('latency.l2', working_set_mib=4):.0f}", "tma_latency": f"{constants['TMA copy']:.0f}",
        "memory": f"{round(device['memory_bytes'] / 2**30)} GiB", "memory_rate": f"{record.per_clock_and_sm(record.dram()):.1f}",
        "memory_latency": f"{record.value('latency.dram', region_mib=256):.0f}",
        "k_tile": k_tile // 1024, "multiply": 2 * TILE_M * TILE_N * TILE_K // roofline_record.TENSOR_FLOP_PER_CLOCK,
        "copy_merged": f"{k_tile / merged:.0f}", "copy_scattered": f"{k_tile / round(scattered, 1):.0f}"}


def draw():
    fact = facts()
    drawing = Drawing(760, 604, "One SM of an H200 with the numbers that the chapters use",
                      "Four tensor cores with their registers, shared memory, the copy engine, the L2 and device memory, with sizes, bytes per "
                      "clock and latencies.")
    drawing.caption(f"One SM of an H200: {fact['sms']} of them, at up to {fact['clock']}",
                    f"Tensor cores need {fact['multiply']} clocks for a k-tile of {TILE_M} × {TILE_N} × {TILE_K}. What the levels below them deliver "
                    "in that time decides the design of the kernel.", room=64)
    left, wide = 20, 720
    drawing.rect(left, 84, wide, 272, WHITE, stroke=INK, stroke_width=1.5, rx=8)
    drawing.text(left + 14, 106, "one SM", size=13, weight="bold")
    drawing.text(left + wide - 14, 106, f"{fact['all_registers']} registers of 32 bits, at most 255 per thread; {fact['flop']} FLOP per clock in bf16",
                 size=12, fill=SOFT, anchor="end")
    quarter = (wide - 28 - 3 * 10) / QUARTERS
    for index in range(QUARTERS):
        x = left + 14 + index * (quarter + 10)
        drawing.box(x, 118, quarter, 48, GREEN, [f"tensor core {index}", f"{fact['flop_of_one']} FLOP per clock"], LIGHT[GREEN])
        drawing.box(x, 172, quarter, 48, BLUE, [f"{fact['registers']} registers", "accumulators live here"], LIGHT[BLUE])
    drawing.arrow(left + 170, 288, left + 170, 226, stroke=BLUE, width=2.5)
    drawing.text(left + 186, 250, f"{fact['shared_rate']} bytes per clock", size=13, weight="bold")
    drawing.text(left + 186, 268, f"wgmma reads its operands here; a load takes {fact['shared_latency']} clocks", size=12, fill=SOFT)
    drawing.box(left + 14, 290, 480, 54, BLUE, [f"shared memory and L1: one array of {fact['array']}", f"at most {fact['shared']} of shared memory per CTA"])
    drawing.box(left + 546, 290, 160, 54, ORANGE, ["copy engine (TMA)", "copies tiles by itself"], LIGHT[ORANGE])
    drawing.arrow(left + 544, 317, left + 496, 317, stroke=ORANGE, width=2.5)
    drawing.arrow(left + 626, 430, left + 626, 347, stroke=ORANGE, width=2.5)
    drawing.text(left + 612, 379, f"{fact['l2_scattered']} bytes per clock, up to {fact['l2_merged']} where SMs read the same lines together", size=13,
                 anchor="end", weight="bold")
    drawing.text(left + 612, 397, f"latency: {fact['l2_latency']} clocks for a load, about {fact['tma_latency']} for a TMA copy", size=12, fill=SOFT,
                 anchor="end")
    drawing.box(left, 432, wide, 40, ORANGE, [f"L2: {fact['l2']}, shared by all {fact['sms']} SMs"])
    drawing.arrow(left + 626, 530, left + 626, 474, stroke=RED, width=2.5)
    drawing.text(left + 612, 498, f"{fact['memory_rate']} bytes per clock and SM", size=13, anchor="end", weight="bold")
    drawing.text(left + 612, 516, f"latency of a load: {fact['memory_latency']} clocks", size=12, fill=SOFT, anchor="end")
    drawing.box(left, 532, wide, 40, RED, [f"device memory: {fact['memory']}"])
    drawing.text(left, 592, f"The {fact['k_tile']} KB of that k-tile arrive in {fact['copy_merged']} clocks at {fact['l2_merged']} bytes per clock, and in "
                 f"{fact['copy_scattered']} at {fact['l2_scattered']}.", size=12)
    return drawing.svg()


if __name__ == "__main__":
    figure_program(__file__, __doc__, lambda: {FIGURE: draw})
