"""What every Python tool shares: how it ends. Imported before anything that takes time, so that Ctrl-C finds it ready."""
import gc
import os
import signal
import sys

gc.set_threshold(100_000)  # most tools end before there is something to collect, and looking for it takes a tenth of the time


class UserError(Exception):
    """One sentence: what is wrong and what would be right."""


def _interrupted(*_):
    # An exception, not os._exit: half-written files and folders are cleared away on the way out.
    raise SystemExit(130)


if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # a shell ignores it for what runs in the background
    signal.signal(signal.SIGINT, _interrupted)


def _flush(stream):
    """None, or why what was printed could not be written; then it is dropped, so that Python is silent about it at exit."""
    try:
        stream.flush()
        return None
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error


def run(name, main):
    """The exit status of main(), what it printed written out. Bad input is one sentence on stderr and status 2."""
    status, failed = 2, None
    try:
        status = main()
    except UserError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
    except OSError as error:
        failed = error
    unwritten = _flush(sys.stdout)
    failed = failed or unwritten
    if isinstance(failed, BrokenPipeError):  # nobody reads it any more, as in: tools/records csv FILE | head
        return 141
    if failed:
        what = failed.filename or "the output cannot be written"
        print(f"{name}: error: {what}: {failed.strerror}.", file=sys.stderr)
        return 2
    return status
