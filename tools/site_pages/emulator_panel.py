"""The emulator in the pages of the chapters: what the preset emulator-wasm has built, and the place in a chapter where a reader starts it."""
import re
import shutil
import subprocess

from program import UserError
from repository import ROOT

BUILD = ROOT / "build/emulator-wasm"
SCRIPTS = ROOT / "tools/site_pages/emulator"


def files(step=None):
    """What the site has of the modules: of one step, or of all."""
    wasm = sorted(BUILD.glob(f"bin/page_{step[:2] if step else '[0-9][0-9]'}.wasm"))
    modules = [[one, one.with_suffix(".js"), one.with_suffix(".recorded.js")] for one in wasm]
    found = [file for module in modules if all(one.exists() for one in module) for file in module]  # one that is being built lacks some
    return found + ([] if step else script_files())


def script_files():
    """The module of the figure of an mbarrier, where it is built."""
    found = [BUILD / f"bin/page_mbarrier.{ending}" for ending in ("wasm", "js")]
    return found if all(file.exists() for file in found) else []


def build():
    """Builds the modules of all steps, and installs Emscripten where it is missing."""
    done = subprocess.run(["bash", "-c", '. tools/lib/common.sh; . tools/lib/install.sh; ensure_base; ensure_packages "${page_packages[@]}"'], cwd=ROOT,
                          check=False)
    if done.returncode != 0:
        raise UserError("Emscripten could not be installed; the modules need it.")
    for command in (["cmake", "--preset", "emulator-wasm"], ["cmake", "--build", "--preset", "emulator-wasm"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            log = BUILD / "site.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(done.stdout + done.stderr, encoding="utf-8")
            raise UserError(f"the modules could not be built ({' '.join(command)}); {log.relative_to(ROOT)} says why.")


def copy(assets):
    """Puts the modules and the scripts that run them into a folder."""
    for file in (*files(), *([] if not files() else [SCRIPTS / name for name in ("panel.js", "panel.css", "worker.js", "run_kernel.js")])):
        assets.mkdir(exist_ok=True)
        shutil.copy(file, assets)


def size(step):
    """What a reader fetches, in kilobytes: servers compress as gzip does."""
    fetched = [file for file in files(step) if not file.name.endswith(".recorded.js")]
    done = [subprocess.run(["gzip", "-9", "-c", file], capture_output=True, check=True).stdout for file in fetched]
    return round(sum(map(len, done)) / 1000)


def add(page, text):
    """The text of a page: a chapter whose step has a module gets the panel, before its exercises."""
    step = re.fullmatch(r"steps/(\d\d_\w+)/README\.md", page)
    if not step or not files(step[1]):
        return text
    number = step[1][:2]
    panel = f"""<section class="emulator" data-program="page_{number}" aria-labelledby="run-this-kernel-here">
<h2 id="run-this-kernel-here">Run this kernel here</h2>
<p>The emulator runs in this page, too: the kernel of this chapter, and the kernels that its exercises have broken. Choose a shape, a seed, and when asynchronous
operations complete, and see the result or the report, the timeline, and each barrier event by event. Kernels cannot be edited here, because the page has no
compiler: <code>tools/emulate kernel.cu</code> runs a kernel of yours, and <code>tools/run {number} --check</code> this one after you have changed it.</p>
<p><button type="button" class="md-button md-button--primary" hidden>Run this kernel here ({size(step[1])} KB)</button></p>
<noscript><p>Without JavaScript the page cannot run it: use <code>tools/run {number} --check</code>.</p></noscript>
<link rel="stylesheet" href="../../assets/emulator/panel.css">
<script src="../../assets/emulator/panel.js" defer></script>
</section>

"""
    before, heading, after = text.partition("\n## Exercises")
    return f"{before}\n\n{panel}{heading}{after}" if heading else f"{text}\n\n{panel}"
