#!/usr/bin/env python3
"""Writes the tables of the docs, and the numbers in their sentences, from the records of timed runs.

Usage: tools/tables.py [--check | --list] [FILE.md ...]

A table stands between two markers; what is between them is replaced:
  <!-- table: NAME record=docs/results/FILE.json [option=value ...] -->
  <!-- /table -->
NAME is
  course       one row a step of the course, measured or not: its part, its title, its speed at one shape
  contestants  one row a contestant of one shape: shape=4096x4096x4096 (default: 4096x4096x4096, or the largest),
               columns=name,variant,median,quartiles,tflops,gain,cublaslt,ceiling,verdict (default: all of these without
               quartiles and verdict), and joule, picojoule where the power limit decides; intervals=yes adds to gain and
               cublaslt the interval that holds the median with 95 % confidence
  shapes       one row a shape, one column a contestant: value=tflops|cublaslt|ceiling|median (default tflops)
  choices      one row a shape: the variant that a step chose by shape, how it divides the work, its speed (value=, as for
               shapes; only=22 when the record has several such steps)
  population   what a race over random shapes adds up to: speed of the choice, of the fastest variant, and their difference
  work         the speed of the choice in such a race by the work of a shape, also with the time of a launch taken off both sides
  bound        one row a shape: the least time by arithmetic, from bytes and from multiplications, and the highest speed
               relative to cuBLASLt that it allows
  counters     one row a contestant of one shape: what a profiler counted on the way from memory to the SMs, and the
               requests and the clock if the record has them
  rates        the same bytes divided by the median time that another record (times=docs/results/FILE.json) has for the
               contestant, in TB/s, and the share of the rate that docs/results/roofline_h200.json has for reads in the L2
  copies       one row a way of copying between GPUs: how many SMs took part, bytes for each flag, median, rate, and the speed
               relative to the copy engine; by=ctas or by=piece_bytes: one row a number of them, the rates in one column a variant
  gathers      one row a way of multiplying over GPUs, in a record of step 61 or 62: SMs that copy, median, rate of all GPUs
               together, and the speed relative to the first opponent; at the end of each shape the limit
  checks       one row a shape, one column a variant: how much of D was wrong in a record of verifications
  suite        one row a shape and mode of a record of tools/compare --suite, for each contestant its speed relative to
               cuBLASLt with its verdict and its share of the ceiling; at the end geometric mean and worst case
               (only=22_peak, default: the steps)
  measuring    one row a way of timing of a record of tools/measuring (only=zeros,first_launch,...; default: all), then
               what this project's harness measured at the same shapes
  energy       one row a shape of a sustained record: energy of a launch and of one operation, for each contestant, and the
               speed of each step relative to cuBLASLt; at the end its geometric mean (default: only=step,cublaslt_best,ceiling)
  rivals       one row a shape of a record of tools/rivals: the fastest kernel of DeepGEMM, the fastest of the contestants that
               only= picks (default: the steps), and its speed relative to DeepGEMM's; at the end the geometric mean
  conditions   one row a shape: clocks, power, temperature, throttling while it was timed
mode=burst|sustained picks the part of a record of the suite.
only=01,03:64,baseline,ceiling,step picks contestants by number, name, variant or kind; the order is the record's.

A number inside a sentence stands between two markers in one line:
  <!-- number: RECORD CONTESTANT VALUE [option=value ...] -->0.880<!-- /number -->
RECORD is the name of a file in docs/results without .json, CONTESTANT a word as for only=. A step without a variant means
its fastest one. VALUE is
  tflops, median (µs), cublaslt, ceiling, clock, power
  joule, picojoule                  energy of a launch and of one operation, of a sustained run at the power limit
  times=OTHER                       how many times as fast as OTHER in the same run
  faster=OTHER, slower=OTHER        the same in percent; refused when the record says the opposite
  l2_read_bytes, to_sm_bytes, ...   of a record of counters, in MiB
  geometric_mean, worst             of the suite's summary; of a race over random shapes, too, with tenth and count, where
                                    CONTESTANT is speed, best, regret or off_sectors; bound: of the table of this name.
                                    Of such a race that is no record any more, from docs/results/populations.csv.
                                    at=MxNxK,MxNxK: over these shapes only; others=OTHER: and OTHER at those
                                    left out, or, without at=, where CONTESTANT did not run
  mean_times=OTHER                  geometric mean, over all shapes of the record, of how many times as fast as OTHER
Options are shape=, mode= and digits= (after the point).

A number that no record holds is derived, or has a source:
  <!-- number: derived EXPRESSION [digits=n] [unit] -->7.8 µs<!-- /number -->
EXPRESSION is arithmetic: numbers, + - * / **, parentheses, min, max, ceil, floor, round. In it, {RECORD CONTESTANT VALUE ...} is
a recorded number as a sentence would show it. Example: derived 2*4096*4288*4/4.48e6 digits=1 µs
  <!-- number: source -->4.8 TB/s<!-- /number --> ([data sheet](https://...))
The paragraph links the source after the number. A page or a source of this repository must have the number.

A measurement that no record holds is noted on a page of docs/lab, below a line that is written out for the reader:
  <!-- noted: date=2026-11-25 card="NVIDIA H200" commit=1c4bcfbd command="tools/..." [mode=sustained] [kernels=gone] -->
  <!-- /noted -->
Numbers of the same section need no mark; above the first section, those of the whole page. kernels=gone says that what was compared is not kept.

Without files: README.md, CONTRIBUTING.md, docs/**/*.md and steps/*/README.md. --check changes nothing and fails if a
table and its record differ. --list [FILE ...] shows shares and factors (%, ×, times) without a mark, for a person to decide,
and how many numbers of each kind there are.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import program  # noqa: F401 (first, for Ctrl-C)
import math
import re

import blocks
import kinds_of_numbers
import roofline_record
from blocks import markdown
from numbers_of_records import joules, make_number, picojoules, significant
from populations import LAUNCH_US, WORST, bound, bounds, by_work, geometric_mean, population, summary
from program import UserError
from record_rules import RIVAL, geometric_mean as mean_with_interval, identity, median_interval
from records import (MODES, ROOT, default_shape, find_shape, load, load_record, mode_text, nearest, paired, pretty_name,
                     pretty_shape, read_text, relative, selected, shape_name)
from steps import builds_on, descriptions, steps


def interval(ratio):
    if not ratio["median"]:
        return "–"
    return f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"


def linked_name(contestant, document):
    """The contestant's name, a link where it is a step with a chapter."""
    chapter = ROOT / "steps" / contestant["name"] / "README.md"
    if contestant["kind"] != "step" or not chapter.exists() or chapter == document:
        return pretty_name(contestant)
    up = "../" * (len(document.relative_to(ROOT).parts) - 1) if document.is_relative_to(ROOT) else ""
    return f"[{contestant['name']}]({up}steps/{contestant['name']}/README.md)"


def gain(contestant, previous, intervals):
    """How much faster than `previous`: the median over the rounds of one run, and where there are enough, its interval."""
    ratios = paired(contestant, previous)
    if ratios is None:
        return f"{previous['median_us'] / contestant['median_us']:.2f}"
    ratio = median_interval(ratios)
    return interval(ratio) if intervals else f"{ratio['median']:.3f}"


def percent(share):
    return "–" if not share else f"{100 * share:.1f} %"


COLUMNS = {  # name: (heading, right-aligned)
    "name": ("", False),
    "variant": ("variant", False),
    "median": ("median (µs)", True),
    "quartiles": ("quartiles (µs)", True),
    "tflops": ("TFLOP/s", True),
    "gain": ("× step before", True),
    "cublaslt": ("× cuBLASLt", True),
    "ceiling": ("of ceiling", True),
    "verdict": ("against cuBLASLt", False),
    "joule": ("energy per launch (J)", True),
    "picojoule": ("energy per operation (pJ)", True),
}
DEFAULT_COLUMNS = "name,variant,median,tflops,gain,cublaslt,ceiling"
WITH_INTERVALS = ("gain", "cublaslt")
VALUES = {
    "tflops": lambda c: significant(c["tflops"]),
    "median": lambda c: significant(c["median_us"], 4),
    "cublaslt": lambda c: "–" if not c["to_cublaslt"]["median"] else f"{c['to_cublaslt']['median']:.3f}",
    "ceiling": lambda c: percent(c["ceiling_share"]),
}
VALUE_TITLES = {"tflops": "TFLOP/s", "median": "Median time in µs", "cublaslt": "Speed relative to the best of cuBLASLt",
                "ceiling": "Share of the wgmma-only ceiling"}


# Older records have the number of cublasLt.h for some of cuBLASLt's tiles; newer ones the name (baselines_gpu.cpp).
TILE_NAMES = {"14": "32x128", "151": "96x192", "200": "176x64", "457": "192x88", "80": "40x64", "7": "8x64", "105": "56x128", "540": "384x32", "92": "48x64", "137": "80x256", "178": "136x64", "186": "144x256", "116": "64x192", "211": "200x64", "218": "216x128", "220": "224x64", "226": "240x64", "342": "64x304",
              "12": "32x64", "126": "72x192", "194": "160x192", "224": "232x128", "322": "64x120", "331": "64x208",
              "16": "128x32", "26": "64x96", "27": "96x64", "28": "96x128", "29": "128x160", "124": "72x64",
              "134": "80x64", "143": "88x64", "144": "88x128", "159": "104x192", "162": "104x384", "164": "112x64",
              "165": "112x128", "166": "112x192", "181": "136x256", "183": "144x64", "184": "144x128", "188": "152x64", "189": "152x128",
              "197": "168x128", "201": "176x128", "202": "176x192", "208": "192x64", "209": "192x192",
              "236": "272x128", "239": "288x64", "240": "288x128", "244": "304x128", "248": "320x128",
              "312": "64x16", "314": "64x40", "319": "64x88", "324": "64x144", "328": "64x176", "332": "64x216",
              "393": "128x8", "394": "128x16", "336": "64x248", "170": "120x64", "33": "128x96", "59": "24x64", "217": "216x64", "135": "80x128", "402": "128x104", "406": "128x144", "330": "64x200", "323": "64x136", "320": "64x104", "318": "64x80", "227": "240x128", "216": "208x192", "215": "208x128", "195": "160x256", "193": "160x64", "167": "112x256", "145": "88x192", "104": "56x64", "395": "128x24", "396": "128x40", "398": "128x56", "400": "128x80", "401": "128x88", "404": "128x120",
              "405": "128x136", "408": "128x168", "409": "128x176", "410": "128x184", "411": "128x200",
              "412": "128x208", "413": "128x216", "415": "128x232", "416": "128x240", "417": "128x248",
              "419": "128x272", "421": "128x288", "423": "128x304", "448": "192x8", "247": "320x64", "333": "64x224", "347": "64x352", "449": "192x16", "450": "192x24",
              "455": "192x72", "456": "192x80", "458": "192x96", "459": "192x104", "460": "192x112", "463": "192x144",
              "467": "192x176", "470": "192x208", "486": "256x8", "490": "256x48", "495": "256x96", "497": "256x112", "498": "256x120",
              "22": "64x512", "71": "32x192", "276": "480x64", "313": "64x24", "487": "256x16", "492": "256x72", "547": "384x96", "499": "256x136", "500": "256x144", "501": "256x152", "502": "256x160", "548": "384x104", "576": "512x32",
              "125": "72x128", "179": "136x128", "326": "64x160", "345": "64x336", "453": "192x48", "491": "256x56", "494": "256x88",
              "229": "248x64", "230": "248x128", "317": "64x72", "321": "64x112", "329": "64x184", "407": "128x152", "414": "128x224", "465": "192x160", "488": "256x24", "399": "128x72",
              "136": "80x192", "157": "104x64", "158": "104x128", "315": "64x48", "316": "64x56", "338": "64x272", "403": "128x112", "538": "384x16",
              "397": "128x48", "204": "184x64", "160": "104x256", "452": "192x40", "212": "200x128", "454": "192x56", "325": "64x152", "196": "168x64", "221": "224x128",
              "106": "56x192", "107": "56x256", "171": "120x128", "235": "272x64", "327": "64x168", "496": "256x104"}


CLUSTER_NAMES = {7: "4x2", 9: "2x4"}  # the same of its clusters


def variant_name(contestant):
    """What the record calls it, with cuBLASLt's tiles and clusters by name."""
    name = re.sub(r"tile (\d+)", lambda match: TILE_NAMES.get(match[1], match[0]), contestant["variant"])
    return re.sub(r"cluster (\d+)$", lambda match: "cluster " + CLUSTER_NAMES.get(int(match[1]), match[1]), name) or "–"


def cell(column, contestant, previous, document, shape, record, intervals):
    if column == "name":
        return linked_name(contestant, document)
    if column == "variant":
        return variant_name(contestant)
    if column == "quartiles":
        return f"{significant(contestant['q1_us'], 4)} – {significant(contestant['q3_us'], 4)}"
    if column == "gain":
        if contestant["kind"] != "step" or previous is None:
            return "–"
        return gain(contestant, previous, intervals)
    if column == "verdict":
        return "–" if contestant["kind"] != "step" or not contestant["to_cublaslt"]["median"] else contestant["verdict"]
    if column == "cublaslt" and intervals:
        return interval(contestant["to_cublaslt"])
    if column in ("joule", "picojoule"):
        return significant({"joule": joules, "picojoule": picojoules}[column](shape, contestant, record))
    return VALUES[column](contestant)


def pick(contestants, options):
    words = [word for word in options.get("only", "").split(",") if word]
    chosen = [c for c in contestants if not words or selected(c, words)]
    if not chosen:
        raise UserError(f"only={options['only']} picks no contestant of the record.")
    return chosen


def caption(record, path, lead):
    device = record["device"]["name"]
    return ["", f"{lead}{device}, {mode_text(record)}, {record['pattern']} inputs, {record['date'][:10]}, commit "
                f"{record['commit']}; from `{relative(path)}`."]


PARTS = {1: "I · CUDA cores", 4: "II · tensor cores, Ampere style", 8: "III · Hopper (sm_90a)", 30: "IV · epilogues",
         40: "V · operands and types", 50: "VI · many, small, chained", 60: "VII · two GPUs",
         70: "VIII · Blackwell (sm_100a), without a time"}  # by the number from which on steps belong to it


def course_table(record, path, options, document):
    shape = find_shape(record, options["shape"]) if "shape" in options else default_shape(record)
    timed = [c for c in shape["contestants"] if c["kind"] == "step"]
    rows = []
    described, part = descriptions(), None
    for step in steps():
        before, part = part, PARTS[max((first for first in PARTS if first <= int(step[:2])), default=1)]
        fastest = min((c for c in timed if c["name"] == step), key=lambda c: c["median_us"], default=None)
        rows.append(["" if part == before else part, linked_name({"name": step, "kind": "step"}, document),
                     described[step]["title"] if step in described else "–",
                     significant(fastest["tflops"]) if fastest else "–",
                     VALUES["cublaslt"](fastest) if fastest else "–"])
    headings = ["part", "step", "the one new idea", "TFLOP/s", "× cuBLASLt"]
    return markdown(headings, [False, False, False, True, True], rows) + caption(record, path, f"{pretty_shape(shape)}, ")


def contestants_table(record, path, options, document):
    shape = find_shape(record, options["shape"]) if "shape" in options else default_shape(record)
    columns = options.get("columns", DEFAULT_COLUMNS).split(",")
    for column in columns:
        if column not in COLUMNS:
            raise UserError(f"there is no column '{column}'; {nearest(column, list(COLUMNS))}")
    intervals = options.get("intervals", "no") == "yes"
    # Every variant of a step is compared with the first row of the step before it in the table, or of the step that it
    # builds on where that one has a row; then the cell names it.
    rows, before, firsts = [], None, {}
    for contestant in pick(shape["contestants"], options):
        if contestant["kind"] == "step" and contestant["name"] not in firsts:
            before = next(reversed(firsts.values()), None)
            firsts[contestant["name"]] = contestant
        base = firsts.get(builds_on(contestant["name"]), before)
        row = [cell(column, contestant, base, document, shape, record, intervals) for column in columns]
        if base is not before and "gain" in columns:
            row[columns.index("gain")] += f" over {base['name'][:2]}"
        rows.append(row)
    headings = [COLUMNS[column][0] + (" [95 %]" if intervals and column in WITH_INTERVALS else "") for column in columns]
    return markdown(headings, [COLUMNS[column][1] for column in columns], rows) + caption(
        record, path, f"{pretty_shape(shape)}, ")


def chosen_value(options):
    value = options.get("value", "tflops")
    if value not in VALUES:
        raise UserError(f"there is no value '{value}'; {nearest(value, list(VALUES))}")
    return value


def shapes_table(record, path, options, document):
    value = chosen_value(options)
    keys = []
    for shape in record["shapes"]:
        for contestant in pick(shape["contestants"], options):
            if identity(contestant) not in keys:
                keys.append(identity(contestant))
    several = {name for name, _ in keys if sum(other == name for other, _ in keys) > 1}
    headings, rows = ["M×N×K"], []
    for shape in record["shapes"]:
        found = {identity(c): c for c in shape["contestants"]}
        rows.append([pretty_shape(shape)] + [VALUES[value](found[key]) if key in found else "–" for key in keys])
    for name, variant in keys:
        headings.append(pretty_name({"name": name}) + (f" {variant}" if name in several else ""))
    return markdown(headings, [False] + [True] * len(keys), rows) + caption(record, path, f"{VALUE_TITLES[value]}, ")


def choices_table(record, path, options, document):
    value = chosen_value(options)
    rows = []
    for shape in record["shapes"]:
        for contestant in pick(shape["contestants"], options):
            if "choice" not in contestant:
                continue
            choice = contestant["choice"]
            rows.append([pretty_shape(shape), f"`{choice['variant']}`", choice["why"].split(". ")[0],
                         VALUES[value](contestant)])
    if not rows:
        raise UserError(f"the record {relative(path)} has no step that chose a variant.")
    headings = ["M×N×K", "chosen", "the work", "speed"]
    return markdown(headings, [False, False, False, True], rows) + caption(record, path, f"{VALUE_TITLES[value]}, ")


def rivals_table(record, path, options, document):
    def fastest(found):
        return min(found, key=lambda one: one["median_us"])

    rows, ratios = [], []
    for shape in record["shapes"]:
        theirs = [one for one in shape["contestants"] if one["name"] == RIVAL]
        if not theirs:
            raise UserError(f"the record {relative(path)} has no {RIVAL} at {pretty_shape(shape)}; tools/rivals makes one.")
        rival, ours = fastest(theirs), fastest(pick(shape["contestants"], {"only": "step", **options}))
        name = f"{ours['name'][:2]} `{ours['variant']}`" + (f": `{ours['choice']['variant']}`" if "choice" in ours else "")
        ratios.append(rival["median_us"] / ours["median_us"])
        rows.append([pretty_shape(shape), f"`{rival['variant']}`", VALUES["median"](rival), VALUES["cublaslt"](rival),
                     name, VALUES["median"](ours), gain(ours, rival, True)])
    rows.append(["**geometric mean**", "", "", "", "", "", f"**{summary(ratios)['geometric_mean']:.3f}**"])
    headings = ["M×N×K", "DeepGEMM's fastest", "µs", "× cuBLASLt", "step", "µs", "× DeepGEMM [95 %]"]
    return markdown(headings, [False, False, True, True, False, True, True], rows) + caption(record, path, "")


def population_table(record, path, options, document):
    values = population(record)
    rows = []
    for key, what in (("speed", "chosen by the model: speed / cuBLASLt best"),
                      ("tuned", "chosen with `--autotune`: speed / cuBLASLt best"),
                      ("off_sectors", "the same where K or N is an odd multiple of 8"),
                      ("best", "the fastest variant: speed / cuBLASLt best"),
                      ("regret", "time of the choice / time of the fastest variant")):
        if values[key]:
            found = summary(values[key], WORST[key])
            rows.append([what, str(found["count"]), *(f"{found[one]:.3f}" for one in ("geometric_mean", "tenth", "worst"))])
    origin = "Shapes of the grid, " if record.get("population_of") == "grid" else "Random shapes, "
    return markdown(["", "shapes", "geometric mean", "10th percentile", "worst"], [False, True, True, True, True],
                    rows) + caption(record, path, origin)


def work_table(record, path, options, document):
    rows = []
    for (least, most), (speeds, launched) in by_work(record).items():
        name = f"below {most} GFLOP" if least == 0 else f"{least} to {most} GFLOP" if math.isfinite(most) else f"from {least} GFLOP"
        found = summary(speeds)
        rows.append([name, str(found["count"]), *(f"{found[one]:.3f}" for one in ("geometric_mean", "tenth", "worst")),
                     f"{geometric_mean(launched):.3f}"])
    return markdown(["work", "shapes", "speed / cuBLASLt best", "10th percentile", "worst", f"without {LAUNCH_US} µs each"],
                    [False, True, True, True, True, True], rows) + caption(record, path, "")


def bound_table(record, path, options, document):
    rows = []
    for shape in record["shapes"]:
        bytes_us, ceiling_us, ratio = bound(shape)
        reference = next((c["median_us"] for c in shape["contestants"] if c["name"] == "cublaslt_best"), 0)
        rows.append([pretty_shape(shape), significant(bytes_us), significant(ceiling_us), significant(reference),
                     f"{ratio:.3f}", "bytes" if bytes_us > ceiling_us else "multiplications"])
    rows.append(["**geometric mean**", "", "", "", f"**{geometric_mean(bounds(record)):.3f}**", ""])
    return markdown(["M×N×K", "a launch and the bytes (µs)", "multiplications at the ceiling (µs)", "cuBLASLt best (µs)",
                     "speed at most", "decided by"], [False, True, True, True, True, False], rows) + caption(record, path, "")


def suite_table(suite, path, options, document):
    options = {"only": "step", **options}
    columns = []
    for mode in MODES:
        for shape in suite[mode]["shapes"]:
            for contestant in pick(shape["contestants"], options):
                if identity(contestant) not in [identity(known) for known in columns]:
                    columns.append(contestant)
    names = [contestant["name"] for contestant in columns]
    headings, right = ["M×N×K", "mode", "cuBLASLt best (TFLOP/s)"], [False, False, True]
    for contestant in columns:
        name = linked_name(contestant, document)
        headings += [name + (f" {contestant['variant']}" if names.count(contestant["name"]) > 1 else ""), "of ceiling"]
        right += [False, True]
    rows = []
    for mode in MODES:
        for shape in suite[mode]["shapes"]:
            found = {identity(c): c for c in shape["contestants"]}
            reference = [c for c in shape["contestants"] if c["name"] == "cublaslt_best"]
            row = [pretty_shape(shape), mode, significant(reference[0]["tflops"]) if reference else "–"]
            for contestant in columns:
                here = found.get(identity(contestant))
                row += ["–", "–"] if here is None else [
                    f"{interval(here['to_cublaslt'])} {here['verdict']}" if here["kind"] == "step" else
                    interval(here["to_cublaslt"]), percent(here["ceiling_share"])]
            rows.append(row)
    mean, worst = ["**geometric mean**", "burst", ""], ["**worst**", "both", ""]
    for contestant in columns:
        found = [s for s in suite["summary"]
                 if s["name"] == contestant["name"] and s["variant"] in (contestant["variant"], "")]
        mean += [f"**{interval(found[0]['geometric_mean'])}**" if found else "–", ""]
        worst += [f"**{found[0]['worst']['median']:.3f}** at {pretty_shape(found[0]['worst_at'])} "
                  f"{found[0]['worst_at']['mode']}" if found else "–", ""]
    burst = suite["burst"]
    return markdown(headings, right, rows + [mean, worst]) + [
        "", f"Speed relative to the best of cuBLASLt [95 % interval] and verdict; {burst['device']['name']}, "
            f"{mode_text(burst)} and {mode_text(suite['sustained'])}, {burst['pattern']} inputs, {burst['date'][:10]}, "
            f"commit {burst['commit']}; from `{relative(path)}`."]


def seen(conditions):
    """Clock and power while it was timed; of a run too short for that, nothing."""
    if not conditions["sm_clock_mhz_median"]:
        return ["–", "–"]
    return [f"{conditions['sm_clock_mhz_median']:.0f}", f"{conditions['power_w_median']:.0f}"]


def measuring_table(run, path, options, document):
    words = [word for word in options.get("only", "").split(",") if word]
    keys = [claim["key"] for claim in run["claims"]]
    for word in words:
        if word not in keys:
            raise UserError(f"there is no way of timing '{word}'; {nearest(word, keys)}")
    claims = [claim for claim in run["claims"] if not words or claim["key"] in words]

    def contestant(race, name):
        return next(c for c in race["shapes"][0]["contestants"] if c["name"] == name)

    rows = []
    for claim in claims:
        right = contestant(run["races"][claim["against"]], run["kernel"])
        rows.append([claim["how"], pretty_shape(claim), significant(claim["kernel_tflops"]),
                     pretty_name({"name": claim["yardstick"]}), significant(claim["yardstick_tflops"]),
                     f"{claim['ratio']:.3f}", f"{right['to_cublaslt']['median']:.3f}", *seen(claim["conditions"])])
    for index in sorted({claim["against"] for claim in claims}):
        race = run["races"][index]
        shape, ours, best = race["shapes"][0], contestant(race, run["kernel"]), contestant(race, "cublaslt_best")
        rows.append([f"**this project's harness, {race['mode']}**", pretty_shape(shape), significant(ours["tflops"]),
                     pretty_name(best), significant(best["tflops"]), "", interval(ours["to_cublaslt"]),
                     *seen(shape["conditions"])])
    headings = ["how it was timed", "M×N×K", "kernel (TFLOP/s)", "compared with", "yardstick (TFLOP/s)", "speed claimed",
                "speed by this harness [95 %]", "SM clock (MHz)", "power (W)"]
    first = run["races"][0]
    return markdown(headings, [False, False, True, False, True, True, True, True, True], rows) + [
        "", f"The kernel is {run['kernel']} {run['variant']}; {first['device']['name']}, one process, "
            f"{first['date'][:10]}, commit {first['commit']}; from `{relative(path)}`."]


def energy_table(record, path, options, document):
    options = {"only": "step,cublaslt_best,ceiling", **options}
    columns = []
    for shape in record["shapes"]:
        known = [identity(column) for column in columns]
        columns += [one for one in pick(shape["contestants"], options) if identity(one) not in known]
    steps_ = [one for one in columns if one["kind"] == "step"]
    columns = [*steps_, *(one for one in columns if one["kind"] != "step")]
    rows, ratios = [], {identity(one): [] for one in steps_}
    for shape in record["shapes"]:
        found = {identity(one): one for one in shape["contestants"]}
        limited = "power_cap" in shape["conditions"]["throttle_reasons"]
        row = [pretty_shape(shape), *seen(shape["conditions"])]
        for column in columns:
            here = found.get(identity(column))
            if column["kind"] == "step":
                row.append(f"{interval(here['to_cublaslt'])} {here['verdict']}" if here else "–")
                ratios[identity(column)] += [here["to_cublaslt"]] if here else []
            row += [significant(1000 * joules(shape, here, record)), significant(picojoules(shape, here, record))] if here and limited else ["–", "–"]
        rows.append(row)
    mean, headings, right = ["**geometric mean**", "", ""], ["M×N×K", "SM clock (MHz)", "power (W)"], [False, True, True]
    for column in columns:
        mean += [f"**{interval(mean_with_interval(ratios[identity(column)]))}**"] if column["kind"] == "step" else []
        mean += ["", ""]
        headings += [f"{linked_name(column, document)}, × cuBLASLt [95 %]"] if column["kind"] == "step" else []
        headings += [f"{column['name'][:2] if column['kind'] == 'step' else pretty_name(column)}, mJ per launch", "pJ per operation"]
        right += [False, True, True] if column["kind"] == "step" else [True, True]
    return markdown(headings, right, rows + [mean]) + caption(record, path, "Energy per launch and per operation, where the power limit "
                                                              "was reached; ")


def conditions_table(record, path, options, document):
    rows = []
    for shape in record["shapes"]:
        c = shape["conditions"]
        if not c["sm_clock_mhz_max"]:
            rows.append([pretty_shape(shape), "–", "–", "–", "not recorded"])
            continue
        rows.append([pretty_shape(shape),
                     f"{c['sm_clock_mhz_median']:.0f} [{c['sm_clock_mhz_min']:.0f}, {c['sm_clock_mhz_max']:.0f}]",
                     f"{c['power_w_median']:.0f} (at most {c['power_w_max']:.0f})",
                     f"{c['temperature_c_max']:.0f}", ", ".join(c["throttle_reasons"]) or "none"])
    return markdown(["M×N×K", "SM clock (MHz)", "power (W)", "at most (°C)", "throttled by"],
                    [False, True, True, True, False], rows) + caption(record, path, "")


# The columns of a table of counters: heading, field of the record, what it is divided by, how it is written.
COUNTED = [("to the SMs (MiB)", "to_sm_bytes", 2**20, "{:.0f}"), ("read in the L2 (MiB)", "l2_read_bytes", 2**20, "{:.0f}"),
           ("read in memory (MiB)", "dram_read_bytes", 2**20, "{:.0f}"), ("hits of the L2", "l2_hit_percent", 1, "{:.0f} %"),
           ("requests (million)", "l2_read_requests", 1e6, "{:.1f}"),
           ("write requests (million)", "l2_write_requests", 1e6, "{:.1f}"), ("tensor cores busy", "tensor_percent", 1, "{:.1f} %"),
           ("clock (MHz)", "clock_mhz", 1, "{:.0f}")]


def counters_table(record, path, options, document):
    shape = find_shape(record, options["shape"]) if "shape" in options else default_shape(record)
    contestants = pick(shape["contestants"], options)
    rows = [[linked_name(contestant, document), contestant["variant"]] for contestant in contestants]
    headings = ["", "variant"]
    for heading, field, unit, form in COUNTED:
        counted = [contestant for contestant in contestants if field in contestant["counters"]]
        if counted and len(counted) < len(contestants):
            raise UserError(f"the record {relative(path)} has '{field}' for some contestants only; it must have it for all or for none.")
        if counted:
            headings.append(heading)
            for row, contestant in zip(rows, contestants):
                row.append(form.format(contestant["counters"][field] / unit))
    return markdown(headings, [False, False] + [True] * (len(headings) - 2), rows) + [
        "", f"{pretty_shape(shape)}, {record['device']['name']}, {record['profiler']}, one launch each, "
            f"{record['date'][:10]}, commit {record['commit']}; from `{relative(path)}`."]


def rates_table(record, path, options, document):
    if "times" not in options:
        raise UserError("the table names no record of times; write times=docs/results/FILE.json.")
    timed, plateau = load_record(ROOT / options["times"]), roofline_record.load(roofline_record.DEFAULT)
    shape = find_shape(record, options["shape"]) if "shape" in options else default_shape(record)
    medians = {identity(c): c["median_us"] for c in find_shape(timed, shape_name(shape))["contestants"]}
    rows = []
    for contestant in pick(shape["contestants"], options):
        if identity(contestant) not in medians:
            raise UserError(f"{' '.join(identity(contestant))} was not timed in {options['times']}.")
        rate = {field: contestant["counters"][field] / medians[identity(contestant)] * 1e-6
                for field in ("to_sm_bytes", "l2_read_bytes", "dram_read_bytes")}
        rows.append([linked_name(contestant, document), contestant["variant"], f"{rate['to_sm_bytes']:.2f}", f"{rate['l2_read_bytes']:.2f}",
                     f"{100 * rate['l2_read_bytes'] / plateau.l2():.0f} %", f"{rate['dram_read_bytes']:.2f}"])
    headings = ["", "variant", "to the SMs (TB/s)", "read in the L2 (TB/s)", f"share of the plateau ({significant(plateau.l2(), 2)})", "read in memory (TB/s)"]
    return markdown(headings, [False, False] + [True] * 4, rows) + [
        "", f"{pretty_shape(shape)}, {record['device']['name']}. Bytes: {record['profiler']}, one launch each, {record['date'][:10]}; from "
            f"`{relative(path)}`. Times: medians, {mode_text(timed)}, {timed['date'][:10]}, commit {timed['commit']}; from `{options['times']}`. "
            f"Plateau: from `{relative(plateau.path)}`."]


def binary_size(size):
    """65536 is 64 KiB."""
    power = max(power for power in (0, 10, 20, 30) if size >= 1 << power and size % (1 << power) == 0)
    return f"{size >> power} {dict(enumerate(('bytes', 'KiB', 'MiB', 'GiB')))[power // 10]}"


def copies_table(record, _path, options, _document):
    by = options.get("by")
    if by is None:
        headings = ["each rank sends", "variant", "SMs", "median (µs)", "GB/s", "× copy engine"]
        rows = [[binary_size(copy["bytes"]), f"`{one['variant']}`", str(one["ctas"] or "–"), VALUES["median"](one),
                 significant(one["gigabytes_per_second"]), interval(one["to_copy_engine"]) if one["ctas"] else "1"]
                for copy in record["copies"] for one in copy["contestants"]]
        return markdown(headings, [False, False, True, True, True, False], rows)
    if by not in ("ctas", "piece_bytes"):
        raise UserError(f"by={by} is neither by=ctas nor by=piece_bytes.")
    found = {(one["variant"], one[by]): one for one in record["copies"][0]["contestants"] if one["ctas"]}
    variants = list(dict.fromkeys(variant for variant, _ in found))
    rows = [[binary_size(value) if by == "piece_bytes" else str(value)] +
            [significant(found[variant, value]["gigabytes_per_second"]) for variant in variants]
            for value in dict.fromkeys(value for _, value in found)]
    headings = ["bytes per flag" if by == "piece_bytes" else "SMs"] + [f"`{variant}`" for variant in variants]
    return markdown(headings, [True] * len(headings), rows)


def gathers_table(record, _path, _options, _document):
    rows = []
    for gather in record["gathers"]:
        shape = pretty_shape(gather)
        rows += [[shape, f"`{one['variant']}`", str(one["ctas"] or "–"), VALUES["median"](one),
                  significant(one["tflops"]) if "tflops" in one else "–", interval(one["to_reference"])] for one in gather["contestants"]]
        rows.append([shape, "limit", "–", "–", "–", f"{gather['limit']:.3f}"])
    return markdown(["M×N×K", "variant", "SMs that copy", "median (µs)", "TFLOP/s", "× reference"], [False, False, True, True, True, False], rows)


def checks_table(record, path, _options, _document):
    """For a record of verifications of several variants."""
    if "date" not in record:
        raise UserError(f"the record {relative(path)} does not say when and where it was made; make it again with --check --json.")
    variants = list(dict.fromkeys(check["variant"] for check in record["checks"]))
    rows = []
    for name in dict.fromkeys(shape_name(check) for check in record["checks"]):
        row = [pretty_shape(find_shape({"shapes": record["checks"]}, name))]
        for variant in variants:
            checks = [check for check in record["checks"] if (shape_name(check), check["variant"]) == (name, variant)]
            wrong = [check for check in checks if not check["ok"]]
            share = [float(found[1]) for check in wrong if (found := re.search(r"\(([\d.e-]+) %\)", check["summary"]))]
            often = f" ({len(wrong)} of {len(checks)} checks)" if len(checks) > 1 and wrong else ""
            row.append((f"{max(share):.2g} %" if share else "yes") + often if wrong else "right")
        rows.append(row)
    return markdown(["wrong share of D", *(f"`{variant}`" for variant in variants)], [False] + [True] * len(variants), rows) + [
        "", f"{record['device']['name']}, {record['date'][:10]}, commit {record['commit']}; from `{relative(path)}`."]


TABLES = {"contestants": contestants_table, "shapes": shapes_table, "choices": choices_table, "conditions": conditions_table, "energy": energy_table,
          "counters": counters_table, "rates": rates_table, "checks": checks_table, "copies": copies_table, "gathers": gathers_table, "population": population_table, "work": work_table, "bound": bound_table, "suite": suite_table, "rivals": rivals_table, "measuring": measuring_table, "course": course_table}
KINDS = {"suite": "suite", "measuring": "measuring", "counters": "counters", "rates": "counters", "checks": "checks", "copies": "copied", "gathers": "gathered"}  # tables that have a kind of record of their own
# Made by a tool of their own; a page may be written before the machine was there to make them.
HOW_TO_MAKE = {"docs/results/suite_h200.json": "tools/compare --suite", "docs/results/measuring_h200.json": "tools/measuring"}
OPTIONS = {"record", "times", "by", "shape", "columns", "value", "only", "mode", "intervals"}


def make_table(specification, document):
    words = specification.split()
    if not words or words[0] not in TABLES:
        name = words[0] if words else ""
        raise UserError(f"there is no table '{name}'; {nearest(name, list(TABLES))}")
    options = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals or key not in OPTIONS:
            raise UserError(f"'{word}' is not an option of a table; {nearest(key, sorted(OPTIONS))}")
        options[key] = value
    if "record" not in options:
        raise UserError("the table names no record; write record=docs/results/FILE.json.")
    path = ROOT / options["record"]
    if options["record"] in HOW_TO_MAKE and not path.exists():
        return [f"*No record yet: `{HOW_TO_MAKE[options['record']]} --json {options['record']}` on the GPU, then "
                "`tools/tables.py`.*"]
    record = load(path, KINDS[words[0]]) if words[0] in KINDS else load_record(path, options.get("mode"))
    return TABLES[words[0]](record, path, options, document)


def list_numbers(names):
    """Shares and factors without a mark, and how many marks of each kind the pages have."""
    counts = {}
    for path in [pathlib.Path(name).resolve() for name in names] or blocks.documents():
        text = read_text(path, "the page")
        for line, found in kinds_of_numbers.undecided(relative(path), text):
            print(f"{relative(path)}:{line}: {found}")
        for kind, number in kinds_of_numbers.count(text).items():
            counts[kind] = counts.get(kind, 0) + number
    print(", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())) or "no marked numbers")
    return 0


if __name__ == "__main__":
    if "--list" in sys.argv[1:]:
        sys.exit(program.run("tools/tables.py", lambda: list_numbers([word for word in sys.argv[1:] if word != "--list"])))
    sys.exit(blocks.run("tools/tables.py", __doc__, {"table": make_table, "number": ("sentence", make_number),
                                                     "noted": kinds_of_numbers.make_noted},
                        "a table or a number differs from its record"))
