"""What every Python tool shares: how it ends. Imported before anything that takes time, so that Ctrl-C finds it ready."""
import errno
import gc
import io
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


class _Output(io.TextIOWrapper):
    """Standard output that remembers a write that failed: argparse drops it in silence when it prints its help."""
    failed = None

    def write(self, text):
        try:
            return super().write(text)
        except OSError as error:
            self.failed = error
            raise


class _Errors(io.TextIOWrapper):
    """Standard error. Where it cannot be written, the exit status alone has to tell, so that a write never fails."""

    def write(self, text):
        try:
            return super().write(text)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return len(text)


def _open_errors():
    if sys.stderr is None:
        return open(os.devnull, "w", encoding="utf-8")
    return _Errors(sys.stderr.buffer, encoding=sys.stderr.encoding, errors="backslashreplace", line_buffering=True)


def _open_output():
    """sys.stdout as _Output. Where the caller has closed it (>&-), Python has None there and print() says nothing; here each write
    fails."""
    ordinary = sys.stdout
    if ordinary is None:
        return _Output(open(os.open(os.devnull, os.O_RDONLY), "wb"), encoding="utf-8", write_through=True)
    return _Output(ordinary.buffer, encoding=ordinary.encoding, errors=ordinary.errors, line_buffering=ordinary.line_buffering)


def _flush(stream):
    """None, or why what was printed could not be written; then it is dropped, so that Python is silent about it at exit."""
    error = getattr(stream, "failed", None)
    try:
        if stream is not None:
            stream.flush()
    except OSError as now:
        error = error or now
    if error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return error


def _unexpected(kind, error, trace):
    """What no tool catches. Memory may end in any import, where Python would show its own lines and end with status 1."""
    if issubclass(kind, MemoryError) or (issubclass(kind, ImportError) and "failed to map" in str(error)):
        print(f"{os.path.basename(sys.argv[0])}: error: there is not enough memory; raise its limit (ulimit -v).", file=sys.stderr)
        os._exit(2)
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _unexpected
sys.stdout, sys.stderr = _open_output(), _open_errors()


def run(name, main):
    """The exit status of main(), what it printed written out. Bad input is one sentence on stderr and status 2."""
    status, failed = 2, None

    def refuse(_, message):
        raise UserError(f"{message}; {name} --help shows how it is called.")

    if "argparse" in sys.modules:  # which would name a subcommand without its tool, and print how all are called
        sys.modules["argparse"].ArgumentParser.error = refuse
    try:
        status = main()
    except SystemExit as end:  # argparse, after --help
        status = end.code
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
