"""tools/lib/kept_plans.py: the measured plans of step 22 come out as they went in."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lib"))
import kept_plans
from program import UserError

LINES = """# Plans.
# set one weight 1: a shape with two plans
8 16 24 128x64 0 1 1 0 0 0 1 3.25
8 16 24 128x96 0 1 1 0 0 0 1 3.5
# set two weight 2: the same shape again
8 16 24 128x64 1 1 1 0 0 0 1 4
8 16 32 128x64 1 1 1 0 0 0 1 5.125
"""


class KeptPlans(unittest.TestCase):
    def test_lines_come_out_as_they_went_in(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plans.txt.bz2"
            path.write_bytes(kept_plans.packed(LINES))
            self.assertEqual(LINES, kept_plans.unpacked(path))
            path.write_text(LINES, encoding="utf-8")
            with self.assertRaisesRegex(UserError, "has no packed plans"):
                kept_plans.unpacked(path)

    def test_every_kept_plan_has_its_time(self):
        for path in sorted(ROOT.glob("docs/results/plans_*.bz2")):
            lines = [line.split() for line in kept_plans.unpacked(path).splitlines() if not line.startswith("#")]
            self.assertGreater(len(lines), 1000)
            self.assertEqual({12}, {len(line) for line in lines}, path.name)
            self.assertGreater(min(float(line[-1]) for line in lines), 0)


if __name__ == "__main__":
    unittest.main()
