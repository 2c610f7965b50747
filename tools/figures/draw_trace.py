#!/usr/bin/env python3
"""Draws the timelines of the steps, each beside the one it builds on: docs/figures/traces/NN.svg.

Also fills the table of the model's constants in docs/timelines.md, and writes docs/figures/traces/model.json.xz, the same timelines for
the figures that move on the site (tools/site).

Usage: tools/figures/draw_trace.py [--check | --record | --measure] [NN ...]

NN picks figures; without it all are drawn. Their traces are not committed, because the emulator gives the same ones again:
those that are missing in build/emulator/traces, or older than the step's program, are recorded first (tools/run NN --trace).
--record records all of them again. --check draws nothing and fails when a committed figure is not what this script draws.
--measure first runs every step of MEASURED on this machine's Hopper GPU and keeps its first CTA in
docs/figures/traces/measured.json.xz, of which NN.gpu.svg is drawn.
"""
from drawing import Drawing, figure_program
import contextlib
import functools
import json
import os
import re
import subprocess

import packed_json
from blocks import markdown, rewrite
from compact_trace import compact
from figure_data import SM_PROCESS, load_timeline
from palette import ACTIVITY, DARK, GREEN, GRID, INK, ORANGE, SOFT, WHITE
from program import UserError
from records import ROOT, read_text, relative, write_whole

FOLDER = "docs/figures/traces"
BUILD = ROOT / "build/emulator"  # whose folder traces has the timelines of the model
PAGE = "docs/timelines.md"
PACKED = f"{FOLDER}/model.json.xz"
KEPT = f"{FOLDER}/measured.json.xz"  # the timelines of a GPU by their names
# How --record runs a step: its variant, the shape, the number of SMs, and the CTAs that an SM holds at once, as --budget of
# the GPU build says. Both halves of a figure have the same shape and SMs. They have the same tile, too, where a step does not
# change the tile; where it does, the shape is whole tiles of both.
RECORDED = {
    "05": ("two_buffers", "768x128x512", 1, 2), "06": ("128x128x64", "768x128x512", 1, 2),
    "07": ("128x128x64_stages3", "768x128x512", 1, 2), "08": ("128x128", "768x128x512", 1, 2),
    "09": ("128x128", "768x128x512", 1, 3), "10": ("128x128", "768x128x512", 1, 3),
    "11.base": ("128x256", "256x256x512", 1, 1), "11": ("128x256_stages4", "256x256x512", 1, 1),
    "12.base": ("128x256_stages4", "128x768x512", 1, 1), "12": ("128x192_stages3", "128x768x512", 1, 1),
    "13.base": ("128x192_stages3", "256x384x512", 1, 1), "13": ("256x128_stages4", "256x384x512", 1, 1),
    "14.base": ("128x256_stages4", "512x512x512", 4, 1), "14": ("128x256_group16", "512x512x512", 4, 1),
    "15": ("128x256_group16", "512x512x512", 4, 1), "16": ("128x256_2x1_group8", "512x512x512", 4, 1),
    "17.base": ("128x256_2x1_group8", "256x768x512", 2, 1), "17": ("128x192_2x1_group8", "256x768x512", 2, 1),
    "18.data_parallel": ("data_parallel", "640x256x1024", 4, 1), "18": ("stream_k", "640x256x1024", 4, 1),
    "19.base": ("stream_k", "256x768x2048", 7, 1), "19": ("128x192_ping_pong", "256x768x2048", 7, 1),
    "20.base": ("128x256", "768x256x1024", 2, 1), "20": ("192x256_lockstep", "768x256x1024", 2, 1),
    "21.base": ("128x192_ping_pong_lockstep", "512x352x512", 2, 1), "21": ("128x176_ping_pong", "512x352x512", 2, 1),
    "22.base": ("128x176_ping_pong", "512x320x512", 2, 1), "22": ("auto", "512x320x512", 2, 1),
    "70.base": ("128x128", "512x128x512", 1, 2), "70": ("128x128", "512x128x512", 1, 2),
    "71.base": ("128x256", "256x256x512", 1, 1), "71": ("128x256_stages4", "256x256x512", 1, 1),
    "72.base": ("128x256_stages4", "256x512x512", 1, 1), "72": ("128x256_group16", "256x512x512", 1, 1),
    "73": ("128x256", "256x512x512", 1, 1),
    "74.base": ("128x256", "512x256x512", 2, 1), "74": ("256x256", "512x256x512", 2, 1),
    "75": ("256x256", "512x256x512", 2, 1),
    "74.plain": ("256x256", "512x512x128", 2, 1), "74.store": ("256x256_store", "512x512x128", 2, 1),
    "75.store": ("256x256_store", "512x512x128", 2, 1),
    "76.base": ("128x256", "256x512x128", 1, 1), "76": ("128x256", "256x512x128", 1, 1),
    "77.base": ("128x128", "128x512x1024", 1, 1), "77": ("128x128", "128x512x1024", 1, 1), "78": ("128x128", "128x512x1024", 1, 1),
    "78.plain": ("128x128", "128x512x512", 1, 1), "78.quantised": ("128x128_quantised", "128x512x512", 1, 1),
    "40.base": ("128x256_group16", "512x512x512", 4, 1), "40": ("nt", "512x512x512", 4, 1),
    "41.base": ("tn", "512x512x512", 4, 1), "41": ("rs", "512x512x512", 4, 1),
    "42.base": ("128x256_group16", "512x512x512", 4, 1), "42": ("e4m3", "512x512x512", 4, 1),
    "43.base": ("128x256_in_phase", "256x256x1024", 1, 1), "43": ("128x256", "256x256x1024", 1, 1),
    "44.base": ("128x256", "256x256x1024", 1, 1), "44": ("128x256", "256x256x1024", 1, 1),
    "45.base": ("rs", "512x512x512", 4, 1), "45": ("int4_256", "512x512x512", 4, 1),
    "46.base": ("128x256", "256x256x1024", 1, 1), "46": ("128x256_whole", "256x256x1024", 1, 1),
    "30.base": ("128x192_group16", "256x768x512", 2, 1), "30": ("shared_buffers", "256x768x512", 2, 1),
    "31.base": ("plain", "256x768x512", 2, 1), "31": ("bias_gelu", "256x768x512", 2, 1),
    "32.base": ("plain", "256x768x512", 2, 1), "32": ("residual", "256x768x512", 2, 1),
    "33.base": ("plain", "256x384x512", 1, 1), "33": ("column_sums", "256x384x512", 1, 1),
    "52.base": ("128x256_group16", "512x512x512", 4, 1), "52": ("speculation", "512x512x512", 4, 1),
    "53.base": ("whole_tiles", "768x512x512", 4, 1), "53": ("halves", "768x512x512", 4, 1),
    "54.base": ("speculation", "512x512x512", 4, 1), "54": ("three_maps", "512x512x512", 4, 1),
    "55.base": ("128x256_whole", "512x512x1024", 4, 1), "55": ("contiguous", "512x512x1024", 4, 1)}
# The groups of rows of those that have some.
GROUPS = {"52": "200,312", "53.base": "192,40,192,60/192", "53": "192,40,192,60/192", "54.base": "200,40,272",
          "54": "200,40,272@1", "55": "200,312"}
CTAS = 8
# The step of NN.base where it is not the one before.
BASES = {"11.base": "10", "12.base": "11", "13.base": "12", "14.base": "13", "17.base": "16", "19.base": "18", "20.base": "19",
         "21.base": "20", "22.base": "21", "30.base": "17", "31.base": "31", "32.base": "32", "33.base": "33", "18.data_parallel": "18",
         "70.base": "09", "71.base": "70", "72.base": "71", "74.base": "73", "76.base": "73", "77.base": "73", "74.plain": "74", "74.store": "74",
         "75.store": "75", "78.plain": "78", "78.quantised": "78", "40.base": "15", "41.base": "40", "42.base": "15",
         "43.base": "43", "44.base": "43", "45.base": "41", "46.base": "44", "52.base": "15", "53.base": "53", "54.base": "52",
         "55.base": "46"}
# NN.svg: the traces that it shows from top to bottom, and what to see in it. {0}, {1}: how a trace compares, see facts().
FIGURES = {
    "05": (["05"], "The loads of a k-tile are in flight while the one before is multiplied. What is left between two multiplications "
           "is the way through the registers to shared memory."),
    "06": (["05", "06"], "The wait between two multiplications is shorter: no warp carries its vectors to shared memory. "
           "Step 06 takes {change}."),
    "07": (["06", "07"], "Two k-tiles are requested at the start. The copies were in time before, so the third stage closes no gap: "
           "step 07 takes {change}."),
    "08": (["07", "08"], "A multiplication is far shorter with wgmma. Issuing the copies is now a gap of its own. "
           "Step 08 takes {change}."),
    "09": (["08", "09"], "The issue has shrunk to a line. One stage makes copy and multiplication take turns in a CTA, and three CTAs "
           "cover for each other: step 09 takes {change}."),
    "10": (["09", "10"], "Each CTA now has two stages: the copy into one is in flight while the other is multiplied. "
           "Step 10 takes {change}."),
    "11": (["11.base", "11"], "With four stages the tensor cores do not stop between the first k-tile of a tile and its last. "
           "Step 11 takes {change}."),
    "12": (["12.base", "12"], "The producer has a track of its own. The tile of 128 × 192 needs more bytes for each multiplication, and "
           "gaps return: step 12 takes {change}."),
    "13": (["13.base", "13"], "Two consumers share a tile of 256 × 128. It is multiplied for longer than it is copied, and the gaps inside "
           "a tile are gone: step 13 takes {change}."),
    "14": (["14.base", "14"], "The copies of the second tile are in flight while the first is stored. Step 14 takes {change}."),
    "15": (["14", "15"], "The warps only write shared memory; TMA stores the tile while the next one is multiplied. "
           "Step 15 takes {change}."),
    "16": (["15", "16"], "Each CTA of a pair loads one half of B for both, and the copies are shorter. Step 16 takes {change}."),
    "17": (["17.base", "17"], "One consumer rounds and stores while the other multiplies, and no gap is left between tiles. In the model "
           "the gaps of step 16 are short, too: step 17 takes {change}."),
    "18": (["18.data_parallel", "18"], "Five tiles on four SMs. Whole tiles leave three SMs idle; stream-K tiles keep all four busy, and "
           "red is the price, passing partials. They take {change}."),
    "19": (["19.base", "19"], "Eight tiles on seven SMs. While one consumer group stores or passes partials, the other one multiplies. "
           "Step 19 takes {change}."),
    "20": (["20.base", "20"], "Three consumers share a tile of 192 × 256 and store it one after the other. The model has no L2, so the gain is "
           "not in it: step 20 takes {change}."),
    "21": (["21.base", "21"], "D has 352 columns. Tiles 192 wide multiply 32 columns that do not exist; tiles 176 wide fit. "
           "Step 21 takes {change}."),
    "52": (["52.base", "52"], "Above one problem of 512 rows, below two groups of 200 and 312. A group ends inside a tile: the rows of tiles are "
           "five in place of four, and their last rows are stored by threads. Step 52 takes {change}."),
    "53": (["53.base", "53"], "Groups of 192, 40, 192 and 60 rows. Above, both warpgroups multiply every tile; below, one of them leaves out "
           "tiles in which it has no rows, and their copies are shorter. In the model that takes {change}."),
    "54": (["54.base", "54"], "Groups of 200, 40 and 272 rows: above in one A, below anywhere, with maps of their own. The first maps are made before the "
           "first copy; later ones are made while tiles are multiplied. TMA stores every tile. Step 54 takes {change}."),
    "46": (["46.base", "46"], "Step 44 above, step 46 below. Each part is issued directly after a promotion, and the next tile's first part before the "
           "store. The model has no time for addresses and scales, so only the latter shows: step 46 takes {change}."),
    "55": (["55.base", "55"], "Above one problem of 512 rows, below two groups of 200 and 312, which have five rows of tiles in place of four. The producer "
           "searches while the ring is full. Step 55 takes {change}."),
    "71": (["71.base", "71"], "The copies run ahead as far as the ring has stages and follow each other without a gap. At an H200's bytes per clock, "
           "they take longer than the multiplications. The first copy and the epilogue are still bare. Step 71 takes {change}."),
    "72": (["72.base", "72"], "The loader fills the ring for the next tile while the warps store this one. The tensor cores still wait for the "
           "epilogue: there is one accumulator. Step 72 takes {change}."),
    "73": (["72", "73"], "Each epilogue runs under the next tile's multiplications, into the other accumulator. The copies follow each other "
           "from the first tile to the last. Step 73 takes {change}."),
    "74": (["74.base", "74"], "Two SMs, two tiles on each. With half of B in each CTA a k-tile is a third fewer bytes, and the copies are as much "
           "shorter; they still take longer than the multiplications. The issuer is in one of the CTAs. Step 74 takes {change}."),
    "75": (["74", "75"], "The same tiles on the same two SMs. The second tile is asked for while the first is multiplied, so nobody waits for the "
           "answer. Step 75 takes {change}."),
    "74.store": (["74.plain", "74.store"], "Four tiles of a pair, with K = 128. Above, the warps store D, and the issuer waits for an accumulator. Below, they "
                 "only write shared memory, and the copies set the pace. The variant takes {change}."),
    "75.store": (["74.store", "75.store"], "The same tiles. The scheduler requests them one after the other. With K = 128, each is copied sooner than the "
                 "next one is known, and the copies pause. Step 75 takes {change}."),
    "76": (["76.base", "76"], "Above, one epilogue follows another without a pause, and the issuer waits for an accumulator. Below, the warps only write "
           "shared memory, and the copies set the pace. Step 76 takes {change}."),
    "77": (["77.base", "77"], "Four tiles of 128 × 128. A k-tile has as many bytes of operands as above and 3 % more of scales, but twice as many "
           "elements, and the copies set the pace. Step 77 takes {change}."),
    "78": (["77", "78"], "The same four tiles. A k-tile has twice as many elements again and 9 % more bytes, because it has four times as many "
           "scales. Step 78 takes {change}."),
    "78.quantised": (["78.plain", "78.quantised"], "Four tiles with K = 512. Above, D is bf16; below, it is e2m1 with its scales, and each epilogue writes far fewer "
                     "bytes. The model does not count the arithmetic of the quantiser. The variant takes {change}."),
    "70": (["70.base", "70"], "The multiplication takes half as long, at the documented rate of the tensor cores. Nothing else is shorter: with one "
           "stage the round trip of a k-tile is what is left. Step 70 takes {change}."),
    "22": (["22.base", "22"], "D has 320 columns. Tiles 176 wide multiply 32 columns that do not exist; step 22 chooses tiles 160 wide. "
           "It takes {change}."),
    "30": (["30.base", "30"], "C arrives while the tile is multiplied, so no epilogue waits for it. C is 15 % more bytes to copy at this short K, and the "
           "model is limited by copies: step 30 takes {change}."),
    "31": (["31.base", "31"], "Without a visitor above, with bias and GELU below. The biases are loaded before the tile is multiplied. The model counts "
           "memory accesses and no arithmetic, so of GELU itself nothing shows: bias_gelu takes {change}."),
    "32": (["32.base", "32"], "Without a tree above, with a residual below. The residual arrives while the tile is multiplied, so no epilogue waits for "
           "it. At this short K it is 15 % more bytes to copy, and the model is limited by copies: residual takes {change}."),
    "33": (["33.base", "33"], "Without a tree above; with bias, ReLU and sums over rows, in a fixed order, below. An epilogue is "
           "four times as long: it adds in shared memory, writes 192 sums and counts its tile. It stays under the other consumer's "
           "multiplication. Only the last one of a CTA is bare: column_sums takes {change}."),
    "40": (["40.base", "40"], "Both operands K-major above, both MN-major below: six copies fill a stage instead of two, with as many bytes. Step 40 takes "
           "{change}."),
    "41": (["41.base", "41"], "A from shared memory above, through registers below. Each slab is issued and waited for by itself, and its fragment was loaded "
           "under the slab before. Step 41 takes {change}."),
    "42": (["42.base", "42"], "The same problem in e4m3: half as many k-tiles, each with the same bytes and the same multiplications in clocks. The "
           "stores are as long as before. Step 42 takes {change}."),
    "43": (["43.base", "43"], "In phase above, out of phase below. In phase both warpgroups add at the same time, and the tensor cores wait for them. "
           "Out of phase one multiplies while the other adds: it takes {change}."),
    "44": (["44.base", "44"], "Step 43 above, with scales of blocks below: a third copy for each stage, of 512 bytes, and a multiply-add for each addition. "
           "In the model a store needs all loads before it, so an epilogue waits for B's scales; on a GPU it does not. Step 44 takes {change}."),
    "45": (["45.base", "45"], "Activations through registers above, in step 41; below weights of 4 bits, with the operands exchanged. They are widened while "
           "the 64 of K before are multiplied. Step 45 takes {change}."),
}
# What --measure runs: the variant, and the shape. Both halves of a figure have the same shape, with which every
# CTA has work: whole tiles of both halves, and as many as the SMs take in one round, two, or a few.
MEASURED = {
    "11.base": ("128x256", "3072x2816x512"), "11": ("128x256_stages4", "3072x2816x512"),
    "12.base": ("128x256_stages4", "1536x8448x512"), "12": ("128x192_stages3", "1536x8448x512"),
    "14": ("128x256_group16", "3072x2816x512"), "15": ("128x256_group16", "3072x2816x512"),
    "17.base": ("128x256_2x1_group8", "1536x8448x512"), "17": ("128x192_2x1_group8", "1536x8448x512"),
    "18.data_parallel": ("data_parallel", "1920x2816x1024"), "18": ("stream_k", "1920x2816x1024"),
    "20": ("192x256_lockstep", "4608x2816x1024")}
# NN.gpu.svg: what to see in it. It shows the traces of FIGURES[NN] that were measured.
MEASURED_FIGURES = {
    "11": "With two stages a k-tile is issued, waited for and multiplied in turn: one every {k_tile[0]} clocks, and with four one every "
          "{k_tile[1]}. In step 11 the last k-tile of consumer 0 waits for as long as consumer 1 stores. Its records are stores, too, so "
          "recording may be the cause.",
    "12": "The producer mostly waits for an empty stage, and the consumer's last k-tile comes without a stall. The smaller tile "
          "has a k-tile every {k_tile[1]} clocks, step 11 one every {k_tile[0]} with a third more columns. One warpgroup stores it, and takes longer.",
    "15": "From the last multiplication of a tile to the first of the next one {gap[0]} clocks pass in step 14, {gap[1]} in step 15. In the model "
          "they are {model_gap[0]} and {model_gap[1]}.",
    "17": "In step 16 both consumers stop multiplying for {gap[0]} clocks between two tiles. In step 17 consumer 1 begins a tile {turn[1]} clocks before the "
          "last multiplication of consumer 0 has ended, and stores (blue) stand above multiplications (green).",
    "18": "The CTA has two whole tiles above, 32 k-tiles. Stream-K gives it 20, the first four of them of a tile that another CTA finishes. "
          "Passing partials takes {partials[1]} clocks, and this CTA ends {sooner} % sooner.",
    "20": "Three consumers share a tile. One k-tile comes every {k_tile[0]} clocks, and {gap[0]} clocks pass between two tiles; in the model they are "
          "{model_k_tile[0]} and {model_gap[0]}. Waits for an entry of the queue (violet) are short.",
}
STAGES_SHOWN = ("09", "10", "11", "12")  # their bars have the number of the stage
PARITY_SHOWN = ("10", "11")              # and the parity of its phase
TCGEN05_FASTER = 2  # than wgmma, by the documented rate (timeline_model.h)
NARROW_TCGEN05 = {"77": (2, "fp8 "), "78": (4, "4-bit ")}  # than bf16
FP8_FASTER = 2      # than bf16: a wgmma has twice the K in as many clocks
FP8_STEPS = ("42", "43", "44", "46", "55")  # whose traces are of e4m3
LEFT, WIDTH, ROW, LANE = 166, 860, 26, 13
TOP = 96  # of the first panel: behind the caption and the legend


def load(path):
    """A timeline with its end."""
    return with_end(load_timeline(path))


def step_of(name):
    return BASES.get(name, name)


def run_command(name):
    """What runs the step of a timeline on the emulator."""
    return ["tools/run", step_of(name), "--backend", "emulator"]


@functools.cache
def recording(name):
    """Where the timeline `name` of the model is; it is recorded, once, where it is missing or older than the step's program."""
    path = BUILD / "traces" / f"{name}.json"
    times = [program.stat().st_mtime for program in BUILD.glob(f"bin/{step_of(name)}_*") if program.is_file()]
    if not path.exists() or any(time > path.stat().st_mtime for time in times):
        record([name])
    return path


def model_of(name):
    return load(recording(name))


def with_end(trace):
    events = trace["traceEvents"]
    end = max(event["args"]["clock"] + event["args"]["clocks"] for event in events if event["ph"] == "X")
    return {"about": trace["otherData"], "events": events, "end": end}


def start_of(event):
    return event["args"]["clock"]


def end_of(event):
    return event["args"]["clock"] + event["args"]["clocks"]


def processes(trace):
    """pid -> name, of the CTAs and the SMs."""
    return {event["pid"]: event["args"]["name"] for event in trace["events"] if event["name"] == "process_name"}


def tracks(trace):
    """{(process, thread): [events]}, by name, each in the order of time."""
    threads = {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["events"]
               if event["name"] == "thread_name"}
    names = processes(trace)
    found = {}
    for event in trace["events"]:
        if event["ph"] == "X":
            found.setdefault((names[event["pid"]], threads[event["pid"], event["tid"]]), []).append(event)
    return {key: sorted(events, key=start_of) for key, events in found.items()}


def sm_of(process):
    return int(process.rpartition("SM ")[2])


def cta_of(process):
    return int(process.split()[1])


def sms(trace):
    """The SMs of the launch, also those that did nothing; on a GPU those of the recorded CTAs."""
    if trace["about"]["backend"] == "model":
        return list(range(trace["about"]["sms"]))
    return sorted({sm_of(name) for name in processes(trace).values()})


def slots(trace):
    """[[CTA]]: the CTAs of the first SM, those in one list one after the other, the lists at the same time."""
    spans = {}
    first = sms(trace)[0]
    for (process, _), events in tracks(trace).items():
        if process.startswith("CTA") and sm_of(process) == first:
            begin, end = spans.get(cta_of(process), (start_of(events[0]), 0))
            spans[cta_of(process)] = min(begin, start_of(events[0])), max(end, *map(end_of, events))
    found = []
    for cta, (begin, end) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        place = next((slot for slot in found if slot["end"] <= begin), None)
        if place is None:
            found.append({"ctas": [cta], "end": end})
        else:
            place["ctas"].append(cta)
            place["end"] = end
    return [slot["ctas"] for slot in found]


def mark_stages(trace):
    """Gives every copy and multiplication of a CTA with one tile its k-tile and stage: they come in the order of the k-tiles."""
    about = trace["about"]
    tile_k = about["tile"][2]
    k_tiles = -(-int(about["shape"].split("x")[2]) // tile_k)
    found = {}
    for (process, thread), events in tracks(trace).items():
        for event in events:
            if event["name"] in ("copy", "multiply") and not event["args"].get("drain"):
                # A role has a track, an engine says whose work it is.
                whose = (process, thread) if process.startswith("CTA") else (event["args"]["cta"], event["args"].get("consumer"))
                found.setdefault((event["name"], whose), []).append(event)
    for events in found.values():
        if len(events) != k_tiles:
            raise UserError(f"step {about['step'][:2]} has {len(events)} times '{events[0]['name']}' in a CTA with {k_tiles} k-tiles.")
        for k_tile, event in enumerate(sorted(events, key=start_of)):
            event["args"].update(k_tile=k_tile, stage=k_tile % about["stages"])


def parity(trace, event):
    """Of the phase that the event's stage is in, or None."""
    if "k_tile" not in event["args"] or "parity" not in trace:
        return None
    return event["args"]["k_tile"] // trace["about"]["stages"] % 2


def rows(trace):
    """[(name, [events], kind)]: the roles and copies of the first SM, then the tensor cores of every SM."""
    found = []
    all_tracks = tracks(trace)
    together = slots(trace)
    first = sms(trace)[0]
    for slot in together:
        prefix = f"CTA {', '.join(map(str, slot))}: " if len(together) > 1 else ""
        roles = {}
        for (process, thread), events in all_tracks.items():
            if process.startswith("CTA") and sm_of(process) == first and cta_of(process) in slot:
                roles.setdefault(thread, []).extend(events)
        found += [(prefix + thread, events, "role") for thread, events in roles.items()]
        copies = [event for (process, thread), events in all_tracks.items()
                  if process == f"SM {first}" and thread.startswith("copies")
                  for event in events if event["args"]["cta"] in slot]
        if copies:
            found.append((prefix + "copies", copies, "copies"))
    engines = any(thread == "tensor cores" for _, thread in all_tracks)
    for sm in sms(trace) if engines else []:
        events = list(all_tracks.get((f"SM {sm}", "tensor cores"), []))
        if trace["about"].get("sms", 1) > 1:  # what else keeps this SM's consumers: below the bars
            events += [event for (process, _), others in all_tracks.items()
                       if process.startswith("CTA") and sm_of(process) == sm
                       for event in others if event["name"] in ("epilogue", "store", "pass partials")]
        found.append((f"tensor cores, SM {sm}", events, "tensor cores"))
    return found


def busy(trace):
    """The share of the launch in which tensor cores multiply, over all SMs; None where the trace does not say."""
    spans = [event for (process, thread), events in tracks(trace).items() if thread == "tensor cores" for event in events]
    if not spans:
        return None
    return sum(event["args"]["clocks"] for event in spans) / (trace["end"] * len(sms(trace)))


def useful(trace):
    """The share of the rate of wgmma that D's elements got, over all SMs: columns that do not exist do not count."""
    about = trace["about"]
    rate = {constant["name"]: constant["value"] for constant in about["model"]}["wgmma"]
    m, n, k = map(int, about["shape"].split("x"))
    return 2 * m * n * k / (rate * about["sms"] * trace["end"])


def summary(trace):
    """"36,025 clocks, 57 % of the wgmma rate", of the model: that of all SMs. From step 70 on it is the tcgen05 rate."""
    words = f"{trace['end']:,} clocks"
    if trace["about"]["backend"] != "model":
        return words
    if trace["about"]["step"] >= "70":
        faster, kind = NARROW_TCGEN05.get(trace["about"]["step"][:2], (1, ""))
        return f"{words}, {100 * useful(trace) / TCGEN05_FASTER / faster:.0f} % of the {kind}tcgen05 rate"
    if trace["about"]["step"].startswith(FP8_STEPS):
        return f"{words}, {100 * useful(trace) / FP8_FASTER:.0f} % of the fp8 wgmma rate"
    return f"{words}, {100 * useful(trace):.0f} % of the wgmma rate"


def change(traces):
    """How the last trace compares with the one above it, of the same problem."""
    before, after = traces[-2]["end"], traces[-1]["end"]
    if traces[0]["about"]["shape"] != traces[-1]["about"]["shape"]:
        return "another problem's time"
    percent = round(100 * (after / before - 1))
    if percent == 0:
        return "the same time"
    return f"{abs(percent)} % {'more' if percent > 0 else 'less'} time"


def copy_lanes(trace, events):
    """(key of a lane, number of lanes): a lane for each stage where stages are shown, else as the trace has them."""
    staged = "staged" in trace and all("stage" in event["args"] for event in events)
    of = (lambda event: event["args"]["stage"]) if staged else (lambda event: event["tid"])
    lanes = sorted({of(event) for event in events})
    return (lambda event: lanes.index(of(event))), len(lanes), staged


def row_height(trace, events, kind):
    if kind == "copies":
        _, lanes, staged = copy_lanes(trace, events)
        return max(ROW, LANE * lanes + 6) if staged else ROW
    return ROW


def label(drawing, trace, event, x, y, width, size):
    """The stage inside a bar, if it has room."""
    if "staged" in trace and "stage" in event["args"] and width >= 0.75 * size:
        drawing.text(x + width / 2, y, str(event["args"]["stage"]), size=size, fill=WHITE, anchor="middle", weight="bold")


def draw_row(drawing, trace, row, top, scale):
    name, events, kind = row
    high = row_height(trace, events, kind)
    drawing.text(LEFT - 10, top + 15, name, size=11, anchor="end")
    drawing.line(LEFT, top + high - 3, LEFT + WIDTH, top + high - 3, stroke=GRID)
    below = any(event["name"] != "multiply" for event in events) if kind == "tensor cores" else False
    if kind == "copies":
        lane, lanes, staged = copy_lanes(trace, events)
        lane_height = LANE if staged else 18 / lanes
    bars, labels = {}, []  # {colour: [(x, y, width, height)]}, [(event, x, y, width)]
    for event in events:
        x, width = LEFT + scale * start_of(event), scale * event["args"]["clocks"]
        color, y, height = ACTIVITY[event["name"]], top + 2, 18
        if kind == "copies":
            y, height = top + 2 + lane_height * lane(event), max(lane_height - 1, 1)
            color = DARK[ORANGE] if parity(trace, event) == 1 else color
            labels.append((event, x, y + 9.5, width))
        elif event["name"] == "multiply":
            height = 12 if below else 18
            color = DARK[GREEN] if parity(trace, event) == 1 else color
            labels.append((event, x, top + 14.5, width))
        elif kind == "tensor cores":
            y, height = top + 15, 5
        elif event["name"].startswith("wait"):
            y, height = top + 6, 10
        if kind != "copies" and height >= 12 and width > 3:  # so that bars that follow each other are told apart
            x, width = x + 0.3, width - 0.6
        bars.setdefault(color, []).append((x, y, max(width, 0.8), height))
    for color, boxes in bars.items():
        drawing.bars(boxes, color)
    for event, x, y, width in labels:
        label(drawing, trace, event, x, y, width, 9)
    return high


def heads(trace):
    """What stands above a trace, left and right."""
    about = trace["about"]
    number, _, name = about["step"].partition("_")
    m, n, k = about["shape"].split("x")
    held = about.get("ctas_per_sm", 1)
    machine = f"{about['sms']} SM{'s' if about['sms'] > 1 else ''}" + (f" with {held} CTAs" if held > 1 else "")
    # The tile of a variant that chooses one is not in the trace.
    tile = "" if about["variant"] == "auto" else f", tile {about['tile'][0]} × {about['tile'][1]}"
    if about["backend"] != "model":
        machine = f"CTA 0 of {about['ctas']} on {machine}"
    return [f"Step {number}, {name}, {about['variant']}: {summary(trace)}", f"M × N × K = {m} × {n} × {k}{tile}, {machine}"]


def panel(drawing, trace, top, scale):
    left, right = heads(trace)
    drawing.text(20, top, left, size=12, weight="bold")
    drawing.text(LEFT + WIDTH, top, right, size=11, fill=SOFT, anchor="end")
    y = top + 8
    for row in rows(trace):
        y += draw_row(drawing, trace, row, y, scale)
    return y


def height(trace):
    return 8 + sum(row_height(trace, events, kind) for _, events, kind in rows(trace)) + 30


SOURCE = ("Times are those of the model in docs/timelines.md, not a measurement; operations and waits are those of the emulated "
          "kernels.")


def round_hundred(clocks):
    return f"{100 * round(clocks / 100):,}"


def spans_of_tiles(trace, role):
    """[[multiplications of a tile]] of a role of CTA 0, in the order of time; without the wait for what is still in flight."""
    found = {}
    for (process, thread), events in tracks(trace).items():
        if process.startswith("CTA 0 ") and thread == role:
            for event in events:
                if event["name"] == "multiply":
                    found.setdefault(event["args"]["tile"], []).append(event)
    return list(found.values())


def measured_facts(traces, models):
    """What the captions of measured figures say about traces, and about those of the model: of the last consumer of CTA 0,
    which is no producer in any step."""
    def role(trace):
        return max(thread for process, thread in tracks(trace) if process.startswith("CTA 0 ") and thread.startswith("consumer"))

    def k_tile(trace):  # from the first multiplication of a tile to the last one's beginning
        first = [event for event in spans_of_tiles(trace, role(trace))[0] if not event["args"].get("drain")]
        return round_hundred((start_of(first[-1]) - start_of(first[0])) / (len(first) - 1))

    def gap(trace):
        tiles = spans_of_tiles(trace, role(trace))
        return round_hundred(start_of(tiles[1][0]) - end_of(tiles[0][-1])) if len(tiles) > 1 else None

    def turn(trace):  # ping-pong: how much sooner consumer 1 begins than consumer 0 has ended
        first, second = spans_of_tiles(trace, "consumer 0"), spans_of_tiles(trace, "consumer 1")
        return round_hundred(end_of(first[0][-1]) - start_of(second[0][0])) if first and second else None

    def partials(trace):
        return round_hundred(sum(event["args"]["clocks"] for event in tracks(trace).get((cta_0(trace), role(trace)), [])
                                 if event["name"] == "pass partials"))

    def cta_0(trace):
        return next(name for name in processes(trace).values() if name.startswith("CTA 0 "))
    return {"k_tile": [k_tile(one) for one in traces], "model_k_tile": [k_tile(one) for one in models],
            "gap": [gap(one) for one in traces], "model_gap": [gap(one) for one in models], "turn": [turn(one) for one in traces],
            "partials": [partials(one) for one in traces], "sooner": round(100 * (1 - traces[-1]["end"] / traces[0]["end"]))}


def cost(traces):
    """What recording cost, of traces that say it: the times of whole launches."""
    several = len({trace["about"]["step"] for trace in traces}) > 1
    words = []
    for trace in traces:
        about = trace["about"]
        which = f"step {about['step'][:2]}" if several else about["variant"]
        words.append(f"{which} takes {about['recording']['traced_us']:.1f} µs instead of {about['recording']['ordinary_us']:.1f} µs")
    return f"Recording costs time: when every CTA records, {' and '.join(words)}."


def tick(clocks):
    """A round number of clocks, about an eighth of all."""
    step = 1000
    while clocks / step > 10:
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    return step


def legend(drawing, traces, top):
    """What is in the figure: a pale bar is a wait."""
    there = {event["name"] for trace in traces for _, events, _ in rows(trace) for event in events}
    entries = [(ACTIVITY[name], words) for names, words in
               ((("issue", "copy"), "copies: issue, flight"), (("multiply",), "multiply"), (("epilogue", "store"), "epilogue, store"),
                (("pass partials",), "pass partials"), (("wait full",), "wait full"), (("wait empty",), "wait empty"),
                (("wait order",), "wait order"), (("wait store",), "wait store"), (("wait source",), "wait source"))
               for name in names[:1] if there.intersection(names)]
    x = 20
    for color, words in entries:
        drawing.rect(x, top - 9, 10, 10, color)
        drawing.text(x + 14, top, words, size=11, fill=SOFT)
        x += 30 + 6.2 * len(words)
    if any("staged" in trace for trace in traces):
        words = "number: the stage"
        if any("parity" in trace for trace in traces):
            drawing.rect(x, top - 9, 10, 10, DARK[ORANGE])
            drawing.rect(x + 12, top - 9, 10, 10, DARK[GREEN])
            words = "dark: phase of parity 1; number: the stage"
            x += 12
        else:
            x -= 14
        drawing.text(x + 14, top, words, size=11, fill=SOFT)


def draw(name, traces, measured=False):
    """Traces below each other, on one scale, the base of a step above the step."""
    for trace in traces:
        if name in STAGES_SHOWN:
            trace["staged"] = True
            mark_stages(trace)
            if name in PARITY_SHOWN:
                trace["parity"] = True
    end = max(trace["end"] for trace in traces)
    scale = WIDTH / end
    numbers = [trace["about"]["step"][:2] for trace in traces]
    title = f"Timelines of steps {numbers[0]} and {numbers[-1]}"
    if numbers[0] == numbers[-1]:
        title = f"Timeline{'s' if len(traces) > 1 else ''} of step {numbers[0]}"
    if measured:
        about = traces[0]["about"]
        title += f", measured on an {about['device'].removeprefix('NVIDIA ')}"
        models = [model_of(one) for one in FIGURES[name][0] if one in MEASURED]
        says = MEASURED_FIGURES[name].format(**measured_facts(traces, models))
        sentence = (f"M × N × K = {about['shape'].replace('x', ' × ')}, {'the first CTA of each launch' if len(traces) > 1 else 'the first CTA'}. {says} {cost(traces)}")
        description = f"What the roles of a CTA did over time on a GPU. {sentence}"
    else:
        sentence = FIGURES[name][1] if len(traces) == len(FIGURES[name][0]) else ""
        if "{change}" in sentence:
            sentence = sentence.format(change=change(traces))
        description = f"What the roles of a CTA do over time, and when the tensor cores multiply. {sentence}"
    drawing = Drawing(LEFT + WIDTH + 24, 0, title, description, decimals=1)
    top = drawing.caption(title, sentence) + 26
    legend(drawing, traces, top)
    top += 26
    for trace in traces:
        top = panel(drawing, trace, top, scale) + 30
    y = top - 24
    for clocks in range(0, end + 1, tick(end)):
        x = LEFT + scale * clocks
        drawing.line(x, y - 8, x, y - 2, stroke=SOFT)
        drawing.text(x, y + 10, f"{clocks:,}", size=10, fill=SOFT, anchor="middle")
    drawing.text(LEFT - 10, y + 10, "time in clocks", size=11, fill=SOFT, anchor="end")
    if any(trace["about"]["sms"] > 1 and kind == "tensor cores" for trace in traces for _, _, kind in rows(trace)):
        drawing.text(20, y + 32, "The roles are those of SM 0. Thin bars are the epilogues and partials of all consumers of an SM.", size=11)
        y += 16
    drawing.text(20, y + 32, "White is none of these states; the recorder's own work is part of it." if measured else SOURCE,
                 size=11, fill=INK)
    drawing.height = y + 44
    return drawing.svg()


def record(names):
    """Records timelines of the model. Whoever reads one meanwhile sees a whole file."""
    folder = BUILD / "traces"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        variant, shape, count, held = RECORDED[name]
        part = folder / f"{name}.{os.getpid()}.part"
        command = [*run_command(name), shape, "--variant", variant, "--sms", str(count), "--trace-ctas", str(CTAS),
                   "--trace-ctas-per-sm", str(held), *(["--groups", GROUPS[name]] if name in GROUPS else []), "--trace"]
        print(" ".join([*command, relative(folder / f"{name}.json")]), flush=True)
        try:
            if subprocess.run([*command, part], cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode != 0 or not part.is_file():
                raise UserError(f"'{' '.join(command)} FILE' failed.")
            part.replace(folder / f"{name}.json")
        finally:
            with contextlib.suppress(FileNotFoundError):
                part.unlink()


def first_cta(name, trace, printed):
    """A trace of a GPU as tools/run wrote it, without what its figure does not show: with the first CTA only. `printed` is
    what the run said; the cost of recording is taken from there."""
    found = re.search(r"overhead: ([\d.]+) us when every CTA records, ([\d.]+) us in the ordinary build", printed)
    if not found:
        raise UserError(f"the run that recorded {name} does not say what recording cost.")
    first = min(event["pid"] for event in trace["traceEvents"])
    times = {"traced_us": float(found[1]), "ordinary_us": float(found[2])}
    return {"otherData": {**trace["otherData"], "recording": times}, "traceEvents": [event for event in trace["traceEvents"] if event["pid"] == first]}


def kept(file):
    """name -> timeline, of a packed file, which need not be there yet."""
    return packed_json.read(ROOT / file) if (ROOT / file).is_file() else {}


def measured_of(name):
    return with_end(kept(KEPT)[name])


def measure(names):
    (BUILD / "traces").mkdir(parents=True, exist_ok=True)
    for name in names:
        variant, shape = MEASURED[name]
        path = BUILD / "traces" / f"{name}.gpu.json"
        command = ["tools/run", step_of(name), shape, "--backend", "gpu", "--variant", variant, "--trace-ctas", "1",
                   "--trace", relative(path)]
        print(" ".join(command))
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise UserError(f"'{' '.join(command)}' failed.")
        traces = {**kept(KEPT), name: first_cta(name, load_timeline(path), done.stdout)}
        write_whole(ROOT / KEPT, packed_json.packed(ROOT / KEPT, traces))


def traces_of(figures):
    """The timelines that figures show, each once."""
    return list(dict.fromkeys(one for name in figures for one in FIGURES[name][0]))


def figures(names):
    """{file: function that draws it}."""
    jobs = {f"{FOLDER}/{name}.svg": lambda name=name: draw(name, [model_of(one) for one in FIGURES[name][0]]) for name in names}
    there = kept(KEPT)
    for name in MEASURED_FIGURES:
        ones = [one for one in FIGURES[name][0] if one in MEASURED]
        if name in names and all(one in there for one in ones):
            jobs[f"{FOLDER}/{name}.gpu.svg"] = lambda name=name, ones=ones: draw(name, [measured_of(one) for one in ones], measured=True)
    jobs[PACKED] = lambda: packed(traces_of(names))
    jobs[PAGE] = lambda: page(model_of(FIGURES[names[0]][0][0]))
    return jobs


def compacted(trace):
    return compact(trace, rows(trace), tracks(trace), heads(trace))


def packed(names):
    """PACKED with these timelines of the model anew."""
    new = {**kept(PACKED), **{name: compacted(model_of(name)) for name in names}}
    return packed_json.packed(ROOT / PACKED, {name: new[name] for name in RECORDED if name in new})


def page(trace):
    """docs/timelines.md with the constants of the model between its markers."""
    table = [[constant["name"], f"{constant['value']:g} {constant['unit']}", constant["source"]] for constant in trace["about"]["model"]]
    text = read_text(ROOT / PAGE, "the page")
    return rewrite(text, ROOT / PAGE, "model", lambda *_: markdown(["what", "value", "source"], [False, True, False], table))


if __name__ == "__main__":
    figure_program(__file__, __doc__, figures, names=list(FIGURES),
                            record=lambda names: record(traces_of(names)),
                            measure=lambda names: measure([one for one in traces_of(names) if one in MEASURED]))
