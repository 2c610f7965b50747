"""tools/same-code: which differences between two builds it reports, and which do not count."""
import shutil

from sandbox import SandboxTest

RESOURCES = "REG:{registers} STACK:{stack} SHARED:{shared} LOCAL:0 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0"
INSTRUCTIONS = (("S2R R0, SR_TID.X ;", "0x0000000000007919", "0x000e280000002100"),
                ("CALL.REL.NOINC `(_Z6helperv) ;", "0x0000000000007944", "0x000fea0003c00000"),
                ("@!P0 BRA 0x10 ;", "0xfffffffc00f88947", "0x000fea000383ffff"),
                ("EXIT ;", "0x000000000000794d", "0x000fea0003800000"))


def kernel(name, instructions=INSTRUCTIONS, registers=32, stack=0, shared=0):
    resources = RESOURCES.format(registers=registers, stack=stack, shared=shared)
    usage = f" Function {name}:\n  {resources}\n"
    code = [f"\t\tFunction : {name}", '\t.headerflags\t@"EF_CUDA_SM90"']
    for number, (text, low, high) in enumerate(instructions):
        code.append(f"        /*{number * 16:04x}*/    {text}    /* {low} */")
        code.append(f"                                              /* {high} */")
    return usage, "\n".join(code) + "\n\t\t..........\n"


def dump(*kernels, architecture="sm_90a"):
    """What cuobjdump -sass -res-usage prints."""
    usage = "".join(k[0] for k in kernels)
    code = "\n\n".join(k[1] for k in kernels)
    return (f"\nFatbin ptx code:\n================\narch = sm_80\nptxasOptions = -v\n\nFatbin elf code:\n================\n"
            f"arch = {architecture}\nidentifier = /somewhere/else.cu\n\nResource usage:\n Common:\n  GLOBAL:0\n{usage}\n"
            f"\tcode for {architecture}\n\t.target\t{architecture}\n\n{code}\n")


class SameCode(SandboxTest):
    def setUp(self):
        super().setUp()
        (self.bin / "diff").symlink_to(shutil.which("diff"))
        self.fake("cuobjdump", 'cat "$3"')  # an object is its dump
        self.old = self.folder / "old"
        self.new = self.folder / "new"

    def build(self, folder, **steps):
        for step, text in steps.items():
            file = folder / f"CMakeFiles/step_{step[1:]}.dir/generated/steps/{step[1:]}.cu.o"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def compare(self, old, new):
        """Of two builds with one step: exit status and lines."""
        self.build(self.old, _01_naive=old)
        self.build(self.new, _01_naive=new)
        done = self.run_tool("same-code", self.old, self.new)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def assert_different(self, old, new, *lines):
        status, found = self.compare(old, new)
        self.assertEqual(status, 1, found)
        self.assertTrue(found[0].startswith("01_naive: different: "), found)
        for line in lines:
            self.assertIn(line, found)

    def test_names_files_and_the_order_of_kernels_do_not_count(self):
        renamed = tuple((i[0].replace("helperv", "other_helperi"), *i[1:]) for i in INSTRUCTIONS)
        old = dump(kernel("_Z1av"), kernel("_Z1bv", INSTRUCTIONS[2:], registers=40))
        new = dump(kernel("_Z4beta", INSTRUCTIONS[2:], registers=40), kernel("_Z5alpha", renamed))
        new = new.replace("/somewhere/else.cu", "/home/me/kernel.cu").replace("    EXIT", "       EXIT")
        self.assertEqual(self.compare(old, new), (0, ["01_naive: same: 2 kernels"]))

    def test_an_operand_counts(self):
        changed = (("S2R R1, SR_TID.X ;", *INSTRUCTIONS[0][1:]), *INSTRUCTIONS[1:])
        self.assert_different(dump(kernel("_Z1av")), dump(kernel("_Z1av", changed)), "  instruction at 0x0000",
                              "    old: S2R R0, SR_TID.X ;", "    new: S2R R1, SR_TID.X ;")

    def test_the_encoding_counts(self):
        changed = (*INSTRUCTIONS[:3], (*INSTRUCTIONS[3][:2], "0x000fec0003800000"))
        self.assert_different(dump(kernel("_Z1av")), dump(kernel("_Z1av", changed)), "  instruction at 0x0030",
                              "    new: /* 0x000fec0003800000 */")

    def test_a_missing_or_an_additional_instruction_counts(self):
        short = dump(kernel("_Z1av", INSTRUCTIONS[:3]))
        self.assert_different(dump(kernel("_Z1av")), short, "    old: EXIT ;", "    new: the end of the kernel")
        self.assert_different(short, dump(kernel("_Z1av")), "    old: the end of the kernel", "    new: EXIT ;")

    def test_registers_stack_shared_memory_and_architecture_count(self):
        plain = dump(kernel("_Z1av"))
        for change in ({"registers": 33}, {"stack": 8}, {"shared": 16}):
            self.assert_different(plain, dump(kernel("_Z1av", **change)), "  resources")
        self.assert_different(plain, dump(kernel("_Z1av"), architecture="sm_80"), "  architecture",
                              "    old: sm_90a", "    new: sm_80")

    def test_the_same_kernel_twice_is_not_the_same_as_once(self):
        twice = dump(kernel("_Z1av"), kernel("_Z1bv"))
        self.assert_different(twice, dump(kernel("_Z1av")),
                              "01_naive: different: 1 of 2 old kernels, 0 of 1 new ones have no equal")
        self.assert_different(dump(kernel("_Z1av")), twice,
                              "01_naive: different: 0 of 1 old kernels, 1 of 2 new ones have no equal")

    def test_kernels_are_compared_with_their_namesakes(self):
        old = dump(kernel("_Z1av"), kernel("_Z1bv", registers=40))
        new = dump(kernel("_Z1bv", registers=41), kernel("_Z1av"))
        self.assert_different(old, new, "  _Z1bv (sm_90a)", "01_naive: different: 1 of 2 old kernels, "
                              "1 of 2 new ones have no equal")

    def test_every_step_is_compared_and_one_that_is_missing_counts(self):
        self.build(self.old, _02_shared_tile=dump(kernel("_Z1av")))
        status, found = self.compare(dump(kernel("_Z1av")), dump(kernel("_Z1av")))
        self.assertEqual(status, 1)
        self.assertEqual(found, ["01_naive: same: 1 kernel", f"02_shared_tile: different: only in {self.old}"])

    def test_what_cannot_be_compared_is_refused(self):
        self.assert_refused(self.run_tool("same-code", self.old), "two build folders")
        self.assert_refused(self.run_tool("same-code", "--all"), "unknown argument '--all'")
        self.assert_refused(self.run_tool("same-code", self.old, self.new), f"there is no folder {self.old}")
        self.old.mkdir()
        self.assert_refused(self.run_tool("same-code", self.old, self.old), "holds no kernels")
        self.build(self.old, _01_naive="not a dump\n")
        self.assert_refused(self.run_tool("same-code", self.old, self.old), "there is no kernel in")
        self.fake("cuobjdump", 'echo "cuobjdump fatal : no" >&2; exit 1')
        self.assert_refused(self.run_tool("same-code", self.old, self.old), "cuobjdump cannot read", "fatal : no")
        (self.bin / "cuobjdump").unlink()
        self.assert_refused(self.run_tool("same-code", self.old, self.old), "cuobjdump is not here")
