"""The table of docs/part-5-types.md that says which pairs of types run in which layout, and as what: it agrees with what the programs of
steps 40 to 46 say of their variants."""
import itertools
import json
import os
import pathlib
import re
import subprocess
import unittest

from sandbox import ROOT

BUILD = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))
STEPS = ("40", "41", "42", "43", "44", "45", "46")
FROM_REGISTERS = {"41", "45"}
LAYOUTS = {
    "both K-major": {("K", "K")}, "A K-major, B N-major": {("K", "MN")}, "A M-major, B N-major": {("MN", "MN")},
    "A M-major, B K-major": {("MN", "K")}, "only one of them MN-major": {("K", "MN"), ("MN", "K")},
    "one operand MN-major": {("K", "MN"), ("MN", "K")}, "both MN-major": {("MN", "MN")},
    "any": set(itertools.product(("K", "MN"), repeat=2)), "packed by the host": {("K", "K")}, "": {("K", "K")}}
WEIGHTS = ("int4", "int8", "e4m3")
GROUPS_OF_TYPES = {
    "tf32, fp8 or int8": {("tf32", "tf32"), ("int8", "int8"), *itertools.product(("e4m3", "e5m2"), repeat=2)},
    "fp16 × weights of 8 bits": {("fp16", weight) for weight in WEIGHTS if weight != "int4"}}


def rows():
    """(pairs of types, layouts, form, what runs it) of each row."""
    text = (ROOT / "docs/part-5-types.md").read_text(encoding="utf-8").split("\n## Which pairs of types run\n")[1]
    table = re.search(r"(?m)^\| A × B .*\n\|[-|]+\n((?:\|.*\n)+)", text)[1]
    pairs = set()
    for line in table.splitlines():
        types, layout, form, runs = (cell.strip() for cell in line.strip("|").split("|"))
        if types in GROUPS_OF_TYPES:
            pairs = GROUPS_OF_TYPES[types]
        elif types.startswith("bf16 × int4, int8 or e4m3"):
            pairs = {("bf16", weight) for weight in WEIGHTS}
        elif types and not types.startswith("the same"):
            pairs = set(re.findall(r"(\w+) × (\w+)", types))
        yield pairs, LAYOUTS[layout], form, runs


def named(runs):
    """(step, variant) of each variant that the cell names; with "" for a step that it names without one."""
    found, step = [], None
    for number, variant in re.findall(r"(?:\[?\b(4[0-6])\b(?:\]\([^)]*\))?:?)|`([a-z0-9_]+)`", runs):
        if number:
            step = number
            found.append((step, ""))
        elif step:
            found.append((step, variant))
    return found


class OperandTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        programs = [next((BUILD / "bin").glob(f"{step}_*"), None) for step in STEPS]
        if None in programs:
            raise unittest.SkipTest(f"{BUILD} does not hold the programs of part V")
        cls.variants = {}  # (step, name): its types and layout
        for step, program in zip(STEPS, programs):
            said = subprocess.run([program, "--describe"], capture_output=True, text=True, check=True).stdout
            for variant in json.loads(said)[0]["variants"]:
                types = variant["types"]
                cls.variants[step, variant["name"]] = ((types["a"], types["b"]), (types["major_a"], types["major_b"]))

    def runs(self, pairs, layouts):
        return {key for key, (types, majors) in self.variants.items() if types in pairs and majors in layouts}

    def test_a_variant_that_a_row_names_has_its_types_and_layout(self):
        count = 0
        for pairs, layouts, form, runs in rows():
            if re.match("refused|not expressible", runs):
                continue
            for step, variant in named(runs):
                matching = {name for number, name in self.runs(pairs, layouts) if number == step}
                with self.subTest(step=step, variant=variant):
                    self.assertTrue(matching if variant == "" else variant in matching)
                    self.assertIn("RS" if step in FROM_REGISTERS else "SS", form)
                    count += 1
        self.assertGreater(count, 15)

    def test_every_variant_of_part_5_has_a_row_that_names_its_step(self):
        listed = set()
        for pairs, layouts, _, runs in rows():
            steps = {step for step, _ in named(runs)}
            listed |= {key for key in self.runs(pairs, layouts) if key[0] in steps}
        self.assertEqual(set(self.variants) - listed, set())

    def test_no_variant_runs_what_is_refused(self):
        count = 0
        for pairs, layouts, _, runs in rows():
            if runs.startswith("refused"):
                self.assertEqual(self.runs(pairs, layouts), set(), runs)
                count += 1
        self.assertGreater(count, 4)
