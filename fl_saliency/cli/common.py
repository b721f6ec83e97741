"""What every command shares: arguments from a dataclass, one line per error, exit statuses."""

import contextlib
import errno
import io
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from fl_saliency.cli.usage import usage_error
from fl_saliency.errors import FlsError

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = [
    "INTERRUPTED",
    "parse_config",
    "printable",
    "progress_bar",
    "run_command",
    "start_tensorflow",
    "terminate_as_interrupt",
]

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
        settings = parse_config(config, argv, prog=prog, description=description)
        with terminate_as_interrupt():
            return job(settings)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except FlsError as error:
        _complain(prog, str(error))
        for note in getattr(error, "__notes__", ()):  # a worker's traceback
            print(note, file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a folder that went away
        where = f"{error.filename}: " if error.filename else ""
        _complain(prog, f"{where}{error.strerror or error}")
        # Only a path that was given can be too long; the rest befalls a job.
        return 2 if error.errno == errno.ENAMETOOLONG else 1
    except KeyboardInterrupt:
        print(f"{prog}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        _complain(prog, f"not enough memory ({str(error)[:200]})".replace(" ()", ""))
        return 1


def progress_bar(wanted: bool, what: str, unit: str, total: int | None = None) -> "tqdm[Any]":
    """A bar on stderr that goes when it is done; none in a pipe, or unless `wanted`."""
    from tqdm import tqdm

    return tqdm(desc=what, total=total, unit=unit, disable=None if wanted else True, leave=False)


def _complain(prog: str, text: str) -> None:
    """Tell an error on one line of stderr."""
    print(f"{prog}: error: {printable(text)}", file=sys.stderr)


def printable(text: str) -> str:
    """`text` on one line, its control characters escaped: a stranger's cannot steer a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _is_out_of_memory(error: Exception) -> bool:
    """NumPy's or TensorFlow's; the latter is asked only if it is running."""
    tensorflow = sys.modules.get("tensorflow")
    exhausted = (MemoryError, *((tensorflow.errors.ResourceExhaustedError,) if tensorflow else ()))
    return isinstance(error, exhausted)


def parse_config(
    config: type[Config],
    argv: Sequence[str] | None,
    *,
    prog: str,
    description: str,
    default: Config | None = None,
) -> Config:
    """Parse `argv` into `config`, with `default`'s values for what is not given.

    Wrong usage is told in one line on stderr and raises SystemExit, as --help does.
    """
    import tyro

    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            return tyro.cli(
                config,
                args=argv,
                prog=prog,
                description=description,
                default=tyro.MISSING_NONPROP if default is None else default,
            )
    except SystemExit as stop:
        if stop.code:
            _complain(prog, usage_error(messages.getvalue()))
        raise


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
