"""Runs Python tools many times in one process, because starting Python takes longer than most of them.

Reads jobs from stdin, one JSON object a line: {"path": FILE, "text": what to put there first, "command": [TOOL, ARGUMENT, ...]}.
Answers each with a line [status, stderr]. What would draw with matplotlib counts as done when it gets that far.
"""
import contextlib
import functools
import io
import json
import pathlib
import sys
import traceback
import types

sys.path.insert(0, str(pathlib.Path("tools/lib").resolve()))
import environment  # noqa: E402 (the path comes first)
import records  # noqa: E402


def require(name, ordinary=environment.require):
    if name == "matplotlib":
        raise SystemExit(0)
    ordinary(name)


@functools.cache
def code_of(tool):
    return compile(pathlib.Path(tool).read_bytes(), tool, "exec")


def run(command):
    sys.argv = command
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = command[0]
    sys.path[0] = str(pathlib.Path(command[0]).parent)
    messages = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(messages):
            exec(code_of(command[0]), main.__dict__)
        status = 0
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001 (what a user would see as a traceback)
        status = 1
        messages.write(traceback.format_exc())
    records.forget()
    return status, messages.getvalue()


environment.require = require
for line in sys.stdin:
    job = json.loads(line)
    pathlib.Path(job["path"]).write_text(job["text"], encoding="utf-8")
    print(json.dumps(run(job["command"])), flush=True)
