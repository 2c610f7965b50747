#!/usr/bin/env python3
"""Adds to a record of tools/roofline when the CTAs of a launch do what comes before their first product and after their last: the
record of docs/lab/launch-ends.md, of which tools/roofline_table.py makes its tables.

Usage: tools/launch_ends.py TRACE.json RECORD.json --to FILE

TRACE.json is a timeline from a GPU, of as many CTAs as it has room for, and RECORD.json has the figures of launches:
  build/gpu/bin/roofline --only launch --json launches.json
  tools/run 22 1024 --trace trace.json --trace-ctas 64
  tools/launch_ends.py trace.json launches.json --to docs/results/launch_ends_h200.json
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # first, for Ctrl-C
import argparse
import json

from figure_data import load_timeline
from program import UserError
from record_rules import quantile
from records import load, relative, write_whole


def events_of(spans):
    """{event: clock} of one CTA; spans: [(role, name, begin, end)]."""
    def of(name, role=""):
        return [(begin, end) for who, what, begin, end in spans if what == name and who.startswith(role)]

    return {
        "producer": min(begin for who, _, begin, _ in spans if who == "producer"),
        "first_copy": min(begin for begin, _ in of("issue", "producer")),
        "first_k_tile": min(end for _, end in of("wait full", "consumer")),
        "last_product": max(end for _, end in of("multiply")),
        "stored": max(end for _, end in of("wait store")),
    }


WHAT = {"producer": "the producer's first wait", "first_copy": "its first copy is issued", "first_k_tile": "a consumer has the first k-tile",
        "last_product": "a consumer has the last product", "stored": "everything is stored"}


def figures_of(trace, path):
    """A figure for each event: clocks since the CTA's first instruction, a sample for each CTA."""
    starts, roles, spans = {}, {}, {}
    for event in trace["traceEvents"]:
        pid, arguments = event["pid"], event["args"]
        if event["name"] == "process_name":
            starts[pid] = arguments.get("start")
        elif event["name"] == "thread_name":
            roles[pid, event["tid"]] = arguments["name"]
        elif event["ph"] == "X":
            span = roles[pid, event["tid"]], event["name"], arguments["clock"], arguments["clock"] + arguments["clocks"]
            spans.setdefault(pid, []).append(span)
    if None in starts.values():
        raise UserError(f"the timeline {relative(path)} does not say when its CTAs started: record it on a GPU, with --trace-ctas 64.")
    samples = {name: [] for name in WHAT}
    for pid, of_cta in spans.items():
        try:
            events = events_of(of_cta)
        except ValueError:
            continue  # a CTA without a tile
        for name, clock in events.items():
            samples[name].append(clock - starts[pid])
    if not samples["producer"]:
        raise UserError(f"the timeline {relative(path)} has no CTA with a producer and a tile; step 22 has some: tools/run 22 1024 --trace FILE.")
    about = trace["otherData"]
    kernel = {"step": about["step"], "variant": about["variant"], "shape": about["shape"]}
    return [{"name": f"ends.{name}", "unit": "clocks", "what": f"since the CTA's first instruction: {WHAT[name]}", "impossible": False,
             "parameters": kernel, "samples": clocks, "lowest": min(clocks), "highest": max(clocks),
             **{field: quantile(clocks, p) for field, p in (("q1", 0.25), ("median", 0.5), ("q3", 0.75))}}
            for name, clocks in samples.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("trace", type=pathlib.Path, metavar="TRACE.json", help="timeline from a GPU")
    parser.add_argument("record", type=pathlib.Path, metavar="RECORD.json", help="record of tools/roofline")
    parser.add_argument("--to", required=True, type=pathlib.Path, metavar="FILE", help="file of the record with both")
    arguments = parser.parse_args()
    record = dict(load(arguments.record, "roofline"))
    kept = [figure for figure in record["figures"] if not figure["name"].startswith("ends.")]
    record["figures"] = kept + figures_of(load_timeline(arguments.trace), arguments.trace)
    write_whole(arguments.to, json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(program.run("tools/launch_ends.py", main))
