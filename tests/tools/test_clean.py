"""tools/clean: what it removes, and what it leaves."""
import subprocess

from sandbox import SandboxTest


class Clean(SandboxTest):
    def setUp(self):
        super().setUp()
        for name in ("build/emulator/bin/x", "build/gpu/y", "tools/lib/__pycache__/a.pyc", "tests/__pycache__/b.pyc",
                     ".toolchain/cuda/bin/nvcc", ".venv/bin/python", ".cache/lint/1", "exercises/01_naive/x/kernel.cuh"):
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(2 << 20) if name.endswith("/x") else b"")

    def left(self):
        return {name for name in ("build", "exercises", "tools", "tools/lib/__pycache__", "tests/__pycache__", ".toolchain",
                                  ".venv", ".cache") if (self.repository / name).exists()}

    def test_what_was_built_goes_and_is_named_with_its_size(self):
        done = self.run_tool("clean")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^removed build/emulator \(2 MB\)$")
        self.assertRegex(lines[1], r"^removed build/gpu \(\d+ KB\)$")
        self.assertEqual({line.split()[1] for line in lines[2:-1]}, {"tools/lib/__pycache__", "tests/__pycache__"})
        self.assertEqual(lines[-1], "freed 2 MB")
        self.assertEqual(self.left(), {"exercises", "tools", ".toolchain", ".venv", ".cache"})
        self.assertEqual(self.run_tool("clean").stdout, "nothing to remove\n")

    def test_all_is_what_was_fetched_too(self):
        self.assertEqual(self.run_tool("clean", "--all").returncode, 0)
        self.assertEqual(self.left(), {"exercises", "tools"})

    def test_dry_removes_nothing(self):
        before = self.left()
        done = self.run_tool("clean", "--dry", "--all")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("build/emulator (2 MB)", ".toolchain", ".venv", ".cache"):
            self.assertIn(f"would remove {name}", done.stdout)
        self.assertNotIn("exercises", done.stdout)
        self.assertIn("would free 2 MB", done.stdout)
        self.assertEqual(self.left(), before)

    def test_copies_in_the_build_folder_are_moved_first(self):
        old = self.repository / "build/exercises/02_shared_tile/y/kernel.cuh"
        old.parent.mkdir(parents=True)
        old.write_text("mine\n")
        self.assertIn("would be moved to exercises", self.run_tool("clean", "--dry").stderr)
        self.assertTrue(old.exists())
        self.assertIn("moved from build/exercises to exercises", self.run_tool("clean").stderr)
        self.assertEqual((self.repository / "exercises/02_shared_tile/y/kernel.cuh").read_text(), "mine\n")
        self.assertFalse((self.repository / "build").exists())

    def test_a_link_is_removed_and_not_what_it_leads_to(self):
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "precious").touch()
        (self.repository / "build/asan").symlink_to(elsewhere)
        self.assertEqual(self.run_tool("clean").returncode, 0)
        self.assertTrue((elsewhere / "precious").exists())

    def test_a_build_in_progress_keeps_its_folder(self):
        lock = self.repository / "build/.lock-gpu"
        with subprocess.Popen(["flock", lock, "bash", "-c", "echo locked; read -r"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as holder:
            self.assertEqual(holder.stdout.readline(), "locked\n")
            self.assert_refused(self.run_tool("clean"), "a command builds in build/gpu now")
            holder.communicate("\n")
        self.assertTrue((self.repository / "build/emulator").exists())
        self.assertEqual(self.run_tool("clean").returncode, 0)
        self.assertNotIn("build", self.left())

    def test_what_belongs_to_somebody_else_is_named(self):
        (self.repository / "build/emulator").chmod(0o555)
        (self.repository / "build/emulator/bin").chmod(0o555)
        self.assert_refused(self.run_restrained("clean"), "cannot remove all of build/emulator; it belongs to")

    def test_an_unknown_argument_is_refused(self):
        self.assert_refused(self.run_tool("clean", "--everything"), "'--everything'", "--all, --dry")
        self.assertIn("build", self.left())
