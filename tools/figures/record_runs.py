#!/usr/bin/env python3
"""Records the runs that the site's figures step through, and the log of docs/figures/mbarrier_events.svg: docs/figures/runs.json.xz, from
what tools/play writes on the emulator.

Usage: tools/figures/record_runs.py [--check]

--check records them too, but writes nothing, and fails when the committed runs are others.
"""
from drawing import ROOT, write_or_compare
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import packed_json
import program
from program import UserError

RUNS = "docs/figures/runs.json.xz"

# The ring of step 12: warps 0-3 multiply, and a warp of 4-7 issues the copies. (stages, variant, shape): six k-tiles each.
RINGS = [(2, "128x128_stages2", "128x128x384"), (3, "128x128_stages3", "128x128x384"), (4, "128x192_stages4", "128x192x384")]
STALLS = [("nobody", ["--completion", "earliest", "--schedule-seed", "4"]), ("the producer", ["--completion", "earliest", "--slow-warps", "4-7"]),
          ("the copies", ["--completion", "latest", "--schedule-seed", "2"]), ("the consumer", ["--completion", "earliest", "--slow-warps", "0-3"])]
# Step 14, whose CTAs compute several tiles: eight tiles of three k-tiles on four CTAs. Warps 0-7 multiply and store.
STORE = ("14", "128x256_group16", "512x512x192", ["--completion", "earliest", "--slow-warps", "0-7"])

# What the mbarrier's figure offers: a title and a script in the language of tools/play mbarrier.
SCRIPTS = [
    ("A wait for phase 0, in phases 0 to 3", "init 1, test 0, arrive, test 0, arrive, test 0, arrive, test 0"),
    ("Threads and bytes", "init 2, arrive_expect 1024, complete 512, arrive, complete 512, wait 0"),
    ("Two laps of a full barrier", "init 1, arrive_expect 512, complete 512, wait 0, arrive_expect 512, complete 512, wait 1"),
    ("A fresh barrier lets a wait for parity 1 pass", "init 1, test 0, wait 1"),
    ("Bytes may come before they are expected", "init 1, complete 512, arrive_expect 512, wait 0"),
    ("Wrong: a byte count that no copy brings", "init 1, arrive_expect 1024, complete 512, wait 0"),
    ("Wrong: more bytes than expected", "init 1, arrive_expect 512, complete 1024, wait 0"),
    ("Wrong: one arrival is missing", "init 2, arrive, wait 0"),
    ("Wrong: one arrival too many", "init 2, arrive_expect 512, arrive, arrive"),
    ("Wrong: the producer is two phases ahead", "init 1, arrive 2, wait 0"),
]
# Where an operand begins that the descriptor's figure shows: the 16 elements of K that a wgmma reads begin 32 bytes further each time.
SPANS = {"none": 32, "32": 32, "64": 64, "128": 128}
ADDRESS = 0x400
# Orders of tiles: all waves of two shapes.
RASTERS = ["8192x8192x8192", "4096x4096x4096"]
# What stream-K divides: numbers of tiles, on four workers, and of k-tiles in each.
TILES, K_TILES = range(1, 13), (16, 64)
# Step 73, whose CTAs compute four tiles of two k-tiles here: 512 columns as two accumulators, and one accumulator of 256. Warps 0-3 read
# accumulators, and warp 4 issues multiplications.
ACCUMULATORS = [(2, "128x256", "256,256"), (1, "128x256_one_accumulator", "256")]
SLOW_ACCUMULATORS = [("nobody", ["--completion", "random", "--schedule-seed", "1"]), ("the epilogue", ["--slow-warps", "0-3"]), ("the issuer", ["--slow-warps", "4"])]


def play(name, *arguments):
    """What a program of tools/play writes with --json."""
    with tempfile.TemporaryDirectory(prefix="gemm-steps.") as folder:
        path = pathlib.Path(folder) / "out.json"
        command = [*play_command(name, arguments), *arguments, "--json", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not path.is_file():
            raise UserError(f"'{' '.join(command)}' failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        return path.read_text(encoding="utf-8")


def play_command(name, _):
    """What runs a program; tests put their build's in its place."""
    return [str(ROOT / "tools/play"), name, *([] if name == "events" else ["--backend", "emulator"])]


def short(event):
    """An event of a log without what the figure does not show."""
    kept = {name: event[name] for name in ("event", "phase", "pending", "tx", "bytes", "threads", "warp", "instructions") if name in event}
    if "barrier" in event:
        kept["barrier"] = event["barrier"].removeprefix("mbarrier ").split(" (")[0]
    return kept


def ring(step, variant, shape, arguments):
    lines = play("events", step, "--variant", variant, "--shape", shape, *arguments).splitlines()
    events = [event for event in map(json.loads, lines) if event["cta"] == "(0,0,0)"]
    # A wait of many threads stands where the last of them passes: only then the warpgroup goes on as a whole.
    return {"events": [short(event) for event in sorted(events, key=lambda event: event.get("last_t", event["t"]))]}


def divisions(tiles, k_tiles):
    """Each worker's activities as [what, begin, end, tile, its first k-tile, the one after its last]."""
    found = json.loads(play("stream_k", "--tiles", str(tiles), "--k-tiles", str(k_tiles)))
    for one in found["divisions"]:
        one["workers"] = [[[act["what"], act["begin"], act["end"], act["tile"], *act["k"]] for act in worker] for worker in one["workers"]]
    return found


def tensor_memory(count, variant, columns, slow, arguments):
    """What happens to the accumulators of the first CTA; the multiplications of a k-tile are one event."""
    lines = play("events", "73", "--variant", variant, "--shape", "512x1024x128", *arguments).splitlines()
    events, next_k_tile = [], True
    for event in sorted(map(json.loads, lines), key=lambda event: event.get("last_t", event["t"])):
        kept = short(event)
        if event["cta"] != "(0,0,0)" or kept.get("barrier", "").startswith("ring.empty"):
            continue
        if kept.get("barrier", "").startswith("ring.full"):
            next_k_tile = next_k_tile or "wait" in event["event"]
        elif event["event"] == "tcgen05.mma" and not next_k_tile:
            events[-1]["instructions"] += 1
        else:
            next_k_tile = next_k_tile and event["event"] != "tcgen05.mma"
            events.append({**kept, "instructions": 1} if event["event"] == "tcgen05.mma" else kept)
    return {"accumulators": count, "slow": slow, "map": json.loads(play("tensor_memory", "map", columns))["allocations"], "events": events}


def recorded():
    rings = [{"stages": stages, "slow": slow, "step": "12", "k_tiles": 6, **ring("12", variant, shape, arguments)}
             for stages, variant, shape in RINGS for slow, arguments in STALLS]
    rings.append({"stages": 4, "slow": "the store", "step": "14", "k_tiles": 3, **ring(*STORE)})
    scripts = [{"title": title, **json.loads(play("mbarrier", *script.split()))} for title, script in SCRIPTS]
    descriptors = {swizzle: [json.loads(play("descriptor", "encode", "--address", hex(ADDRESS + at), "--swizzle", swizzle, "--rows", "8"))
                             for at in range(0, span, 32)] for swizzle, span in SPANS.items()}
    log = [{name: value for name, value in json.loads(line).items() if name != "where"} for line in play("events", "11").splitlines()]
    rasters = [json.loads(play("raster", "--shape", shape, "--waves", "16")) for shape in RASTERS]
    cuts = [divisions(tiles, k_tiles) for k_tiles in K_TILES for tiles in TILES]
    memory = [tensor_memory(*one, *slow) for one in ACCUMULATORS for slow in SLOW_ACCUMULATORS]
    return {"raster": rasters, "stream_k": cuts, "tensor_memory": memory, "log": log, "ring": rings, "mbarrier": scripts, "swizzle": json.loads(play("tma_swizzle", "--rows", "8", "--at", str(ADDRESS))), "descriptor": descriptors}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS,
                                     prog="tools/figures/record_runs.py")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    return write_or_compare("tools/figures/record_runs.py", {RUNS: packed_json.packed(ROOT / RUNS, recorded())}, arguments.check)


if __name__ == "__main__":
    sys.exit(program.run("tools/figures/record_runs.py", main))
