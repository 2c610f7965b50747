"""The Python packages that the tools need, in .venv where this machine has none of its own.

jsonschema checks records against docs/schemas; Debian and Ubuntu have it as python3-jsonschema, which tools/bootstrap
installs. matplotlib draws plots; its version is pinned, because the committed figures are compared byte by byte.
"""
import fcntl
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

from program import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {"matplotlib": "3.10.7", "jsonschema": "4.25.1"}
EXACT = {"matplotlib"}  # of the others any version does that has what AVAILABLE asks for
AVAILABLE = {"matplotlib": f"import matplotlib; assert matplotlib.__version__ == '{PACKAGES['matplotlib']}'",
             "jsonschema": "from jsonschema import Draft202012Validator"}


def has(name):
    """True if this Python has it, in a version that does."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return False
    return module.__version__ == PACKAGES[name] if name in EXACT else hasattr(module, "Draft202012Validator")


def require(name):
    """Returns when this Python has the package; otherwise runs the script again under .venv's, which is made on first use.

    Raises UserError when it cannot be made.
    """
    if not has(name):
        python = ensure(name)
        os.execv(python, [str(python), *sys.argv])


def ensure(name=None):
    """The Python of .venv, which has every package; makes .venv where it is missing or lacks one.

    It is made in a folder beside its place and put there when it is complete; who comes second waits for the first.
    `name` is what it is wanted for now.
    """
    python = ROOT / ".venv" / "bin" / "python"
    with open(__file__, encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = [python, "-c", "\n".join(AVAILABLE.values())]
        if not python.exists() or subprocess.run(complete, capture_output=True, check=False).returncode != 0:
            _make(name)
    return python


def _make(name):
    wanted = [f"{package}=={version}" for package, version in PACKAGES.items()]
    print(f"installing {' and '.join(PACKAGES)} into .venv", file=sys.stderr)
    try:
        folder = tempfile.TemporaryDirectory(dir=ROOT, prefix=".venv.part.")
    except OSError as error:
        raise UserError(f"{name or 'what the tools need'} cannot be installed into {ROOT}/.venv ({error.strerror}); install it "
                        "for all of this machine, or work in a copy of the repository.") from None
    with folder as part:
        environment = pathlib.Path(part) / "venv"
        pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--retries", "1", "--no-input",
               "--disable-pip-version-check", *wanted]
        for command in ([sys.executable, "-m", "venv", environment], pip):
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                last = (done.stderr or done.stdout).strip().splitlines()
                reason = last[-1] if last else "no reason given"
                raise UserError(f"{name or 'what the tools need'} could not be installed ({reason}); " + (
                    "install it ('apt-get install python3-jsonschema'): records are checked with it."
                    if name == "jsonschema" else "figures need it, nothing else does."))
        old = ROOT / ".venv"
        if old.exists():
            old.rename(pathlib.Path(part) / "old")
        environment.rename(old)
