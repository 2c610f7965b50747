"""tools/emulate --json: one document on standard output, whatever happens, and the schema that describes it."""
import json
import re
import site
import subprocess
import unittest

from sandbox import ROOT
from test_emulate import WrittenFile
import schema  # tools/lib, which sandbox has put on the path

site.main()  # for jsonschema

FILE = r"""#include <cstdio>
#include <cstring>
__global__ void turn(int* out, bool races) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  if (!races) __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
__device__ int mirrored(const int* s) { return s[63 - threadIdx.x]; }
__global__ void turn_by_call(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = mirrored(s);
}
__global__ void hang() { if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); }
__global__ void unknown(int x) { asm("vset4.u32.u32.eq %0, %0, 1, 2;" : "+r"(x)); }
#ifdef BROKEN
int broken = "a \"word\"";
#endif
int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "right";
  printf("{ is no document\n");
  volatile int zero = 0;
  if (!strcmp(what, "crashes")) return 5 / zero;
  if (!strcmp(what, "hangs")) hang<<<1, 64>>>();
  if (!strcmp(what, "unknown")) unknown<<<1, 1>>>(argc);
  int *out, host[64];
  cudaMalloc(&out, sizeof host);
  if (!strcmp(what, "calls")) turn_by_call<<<1, 64>>>(out);
  turn<<<1, 64>>>(out, !strcmp(what, "races"));
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  return host[3] == (strcmp(what, "wrong") ? 60 : 7) ? 0 : 1;
}
"""


class Json(WrittenFile):
    def document(self, *arguments, status):
        """The document of a run that ends with the status; every one follows the schema, and people read the same."""
        done = subprocess.run([str(ROOT / "tools/emulate"), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, cwd=ROOT)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(schema.problem(document, "emulate"), "", done.stdout)
        self.assertEqual(document["exit_status"], status)
        for report in document["reports"]:
            self.assertIn(report["text"], done.stderr)
            self.assertIn(report["summary"], report["text"])
        if "error" in document:
            self.assertIn(document["error"]["message"], done.stderr)
        return document

    def test_a_document_for_each_ending(self):
        file = self.folder / "own.cu"
        file.write_text(FILE)
        seeds = (str(file), "--json", "--seeds", "1")
        right = self.document(*seeds, "--allow", "exit-in-flight", status=0)
        self.assertEqual((right["file"], right["result"], right["launches"]), ("own.cu", "right", 3))
        self.assertEqual(right["schedules"], {"planned": 3, "run": 3, "sms": 4})
        self.assertEqual(right["not_checked"], ["exit-in-flight, as --allow says"])

        ledger = self.document(*seeds, "--ledger", status=0)["ledger"]
        meeting, = (row for row in ledger["barriers"] if row["barrier"] == "__syncthreads")
        self.assertEqual((meeting["count"], meeting["arrives"], meeting["phases"]), ("64", "all threads", 1))
        self.assertEqual([(order["before"], order["after"], order["bytes"]) for order in meeting["orders"]],
                         [("threads write", "threads read", 256)])
        races = self.document(*seeds, "--sms", "2", "--", "races", status=3)
        report = races["reports"][0]
        self.assertEqual((races["result"], report["rule"]), ("not judged", "shared-race"))
        accesses = [place for place in report["places"] if place["role"] != "missing"]
        self.assertEqual([place["role"] for place in accesses], ["one", "other"])
        self.assertEqual({(place["file"], place["line"]) for place in accesses}, {("own.cu", 5), ("own.cu", 7)})
        self.assertTrue(report["missing"].startswith("a barrier between own.cu:"))
        self.assertEqual(report["manual"], 'PTX ISA, "Memory Consistency Model"')
        self.assertEqual(report["schedule"]["sms"], 2)
        again = self.document(*report["repeat"][1:report["repeat"].index("--")], "--json", "--", "races", status=3)
        self.assertEqual(again["reports"], races["reports"])

        calls = self.document(*seeds, "--", "calls", status=3)["reports"][0]
        self.assertIn({"file": "own.cu", "line": 13, "inside": [{"file": "own.cu", "line": 9}]},
                      [{key: place[key] for key in place if key != "role"} for place in calls["places"]])
        self.assertNotIn(9, [place["line"] for place in calls["places"]])

        hangs = self.document(*seeds, "--", "hangs", status=3)["reports"][0]
        self.assertEqual(hangs["rule"], "deadlock")
        self.assertIn({"role": "thread", "file": "own.cu", "line": 15}, hangs["places"])
        unknown = self.document(*seeds, "--", "unknown", status=3)["reports"][0]
        self.assertEqual((unknown["rule"], unknown["page"]), ("inline-ptx", "docs/emulator/emulated-forms.md"))
        wrong = self.document(*seeds, "--", "wrong", status=1)
        self.assertEqual((wrong["result"], wrong["reports"][0]["rule"]), ("wrong", "wrong-result"))
        crashes = self.document(*seeds, "--", "crashes", status=2)
        self.assertEqual(crashes["error"], {"kind": "host", "message": "the host code was ended by SIGFPE"})

        error = self.document(*seeds, "-D", "BROKEN", status=2)["error"]
        self.assertEqual((error["kind"], error["places"]), ("compile", [{"role": "where", "file": "own.cu", "line": 18}]))
        self.assertIn("invalid conversion", error["details"])

    def test_bad_input(self):
        for arguments in ((str(self.folder / 'no "such" file.cu'),), ("--bogus",), (str(ROOT / "tests/own_kernel/softmax.cu"), "--bogus"),
                          (str(ROOT / "tests/own_kernel/softmax.cu"), "--counters"), (str(ROOT / "tests/own_kernel/softmax.cu"), "--list-ptx")):
            document = self.document(*arguments, "--json", status=2)
            self.assertEqual(document["error"]["kind"], "input")

    def test_the_page_names_fields_that_are_there(self):
        text = (ROOT / "docs/for-assistants.md").read_text()
        fields = json.dumps(json.loads((ROOT / "docs/schemas/emulate.schema.json").read_text()))
        for name in set(re.findall(r"`([a-z_]+)(?:\[0\])?`", text)) - {"main", "check_kernel"}:
            self.assertIn(f'"{name}"', fields)
        self.assertLessEqual(len([line for line in text.splitlines() if line]), 12)
