"""What every command shares: arguments from a dataclass, one line per error, exit statuses."""

import contextlib
import io
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TypeVar

from fl_saliency.errors import FlsError

__all__ = ["INTERRUPTED", "run_command", "start_tensorflow", "terminate_as_interrupt"]

Config = TypeVar("Config")

INTERRUPTED = 130
"""Exit status after Ctrl-C or SIGTERM, as shells count it (128 + SIGINT)."""


def run_command(
    config: type[Config],
    job: Callable[[Config], int],
    argv: Sequence[str] | None,
    *,
    prog: str,
    description: str,
) -> int:
    """Parse `argv` (default: the process's own) into `config`, run `job`, return an exit status.

    0 done; 1 the job failed; 2 wrong usage or input, nothing written; 130 interrupted.
    Every error is one line on stderr; a user's mistake never shows a traceback.
    """
    try:
        # A config checks itself when it is made, so parsing may raise our errors too.
        settings = _parse(config, argv, prog=prog, description=description)
        with terminate_as_interrupt():
            return job(settings)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except FlsError as error:
        print(f"{prog}: error: {error}", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):  # a worker's traceback
            print(note, file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a folder that went away
        where = f"{error.filename}: " if error.filename else ""
        print(f"{prog}: error: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{prog}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parse(
    config: type[Config], argv: Sequence[str] | None, *, prog: str, description: str
) -> Config:
    import tyro

    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            return tyro.cli(config, args=argv, prog=prog, description=description)
    except SystemExit as stop:
        if stop.code:
            print(f"{prog}: error: {_one_line(messages.getvalue())}", file=sys.stderr)
        raise


def _one_line(boxed: str) -> str:
    """The text of tyro's boxed message as one line, without its closing hint at --help."""
    lines = [line.strip("│╭╮╰╯─ \t") for line in boxed.splitlines()[1:]]
    text = " ".join(line for line in lines if line)
    text = re.split(r"\s*For full helptext,", text)[0]
    return re.sub(r"\s+", " ", text).strip()


@contextlib.contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Turn SIGTERM into KeyboardInterrupt, so that a job ends the same way as after Ctrl-C."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread: signals are somebody else's business
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def start_tensorflow() -> None:
    """Import TensorFlow without its start-up notices, and with oneDNN's kernels.

    TensorFlow writes its notices about absent GPUs straight to the process's stderr, so that is
    set aside during the import; if the import fails they are shown.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Off by default on CPUs without AVX512, where it makes an update 1.7 times faster all the same.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    with _stderr_set_aside():
        import tensorflow as tf

        for device in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(device, True)
        tf.zeros(()).numpy()


@contextlib.contextmanager
def _stderr_set_aside() -> Iterator[None]:
    sys.stderr.flush()
    with tempfile.TemporaryFile() as notices, os.fdopen(os.dup(2), "wb") as stderr:
        os.dup2(notices.fileno(), 2)
        try:
            yield
        except BaseException:
            notices.seek(0)
            stderr.write(notices.read())
            raise
        finally:
            os.dup2(stderr.fileno(), 2)
