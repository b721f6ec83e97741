"""The peers' own virtual environments: made once, then reused.

A peer pins what it was measured with, and may need a Python that is not ours (OpenAI Baselines
needs TensorFlow 1, which ends at Python 3.7), so none of them shares our environment.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Settings, UnavailableError, report, worker

MARKER = "complete.txt"
"""In an environment's folder once all is installed: the pip calls that made it."""


@dataclass(frozen=True, kw_only=True)
class Peer:
    """What a peer's environment is made of."""

    python: str | None = None
    """The Python it needs, as MAJOR.MINOR; None is the one that runs this."""
    installs: Sequence[Sequence[str]]
    """The arguments of each `pip install`, in order."""
    no_python: str = ""
    """Why it needs that Python: the reason given where there is none."""
    no_packages: str
    """The reason given where pip fails, before pip's own words."""

    def recipe(self) -> str:
        """What the marker holds: an environment of another recipe is made anew."""
        lines = [f"python {self.python or '.'.join(map(str, sys.version_info[:2]))}"]
        return "\n".join([*lines, *(" ".join(install) for install in self.installs)]) + "\n"


TORCH = "torch==2.13.0"

PEERS = {
    "sb3": Peer(
        installs=(
            (TORCH,),
            (
                TORCH,
                "stable-baselines3==2.9.2",
                "ale-py==0.12.1",
                "opencv-python-headless==5.0.0.93",
                "gymnasium==1.4.0",
                "numpy==2.4.6",
                "tqdm==4.70.1",
                "rich==15.0.0",
            ),
        ),
        no_packages="Stable-Baselines3 and PyTorch could not be installed",
    ),
    "cleanrl": Peer(
        installs=(
            (TORCH,),
            (TORCH, "envpool==1.2.5", "gymnasium==1.4.0", "numpy==2.4.6"),
        ),
        no_packages="EnvPool and PyTorch could not be installed",
    ),
    "baselines": Peer(
        python="3.7",
        installs=(
            (
                "tensorflow==1.15.5",
                "protobuf==3.20.3",
                "numpy==1.18.5",
                "gym==0.12.6",
                # The last release with the games inside; withdrawn, so only an exact pin finds it.
                "atari-py==0.2.6",
                "opencv-python-headless==4.5.5.64",
                "joblib==1.3.2",
                "cloudpickle==1.2.2",
                "scipy==1.7.3",
                "tqdm==4.68.2",
            ),
            # Its own requirements want MuJoCo and MPI; PPO2 on Atari uses neither.
            ("--no-deps", "baselines==0.1.5"),
        ),
        no_python="OpenAI Baselines needs TensorFlow 1.15, whose last Python is 3.7",
        no_packages="OpenAI Baselines and TensorFlow 1.15 could not be installed",
    ),
}


def environment(name: str, folder: Path) -> Path:
    """The python of peer `name`'s environment in folder/name, made unless it is complete.

    UnavailableError says in one line why there is none.
    """
    peer = PEERS[name]
    home = folder.absolute() / name
    python = home / "bin" / "python"
    marker = home / MARKER
    if marker.is_file() and marker.read_text() == peer.recipe():
        return python
    base = _interpreter(peer)
    if home.exists():
        shutil.rmtree(home)
    report(f"{name}: making its environment in {home}")
    _checked([base, "-m", "venv", home], f"{base} cannot make a virtual environment")
    for install in peer.installs:
        _checked([python, "-m", "pip", "install", "--quiet", *install], peer.no_packages)
    marker.write_text(peer.recipe())
    return python


def peer(settings: Settings, name: str, script: str, *arguments: object) -> dict[str, Any]:
    """Run `script` of benchmarks/peers in peer `name`'s environment; gives its figures."""
    python = environment(name, settings.peers)
    return worker([python, ROOT / "benchmarks" / "peers" / script, *map(str, arguments)])


def _interpreter(peer: Peer) -> Path:
    if peer.python is None:
        return Path(sys.executable)
    for candidate in _candidates(peer.python):
        if _is_version(candidate, peer.python):
            return candidate
    raise UnavailableError(f"{peer.no_python}, and no Python {peer.python} was found")


def _candidates(wanted: str) -> Iterator[Path]:
    """Where a Python MAJOR.MINOR may be: on PATH, of pyenv, of uv."""
    if found := shutil.which(f"python{wanted}"):
        yield Path(found)
    versions = Path.home() / ".pyenv" / "versions"
    yield from sorted(versions.glob(f"{wanted}*/bin/python"), reverse=True)
    if uv := shutil.which("uv"):
        done = subprocess.run([uv, "python", "find", wanted], capture_output=True, text=True)
        if done.returncode == 0:
            yield Path(done.stdout.strip())


def _is_version(python: Path, wanted: str) -> bool:
    """Ask it: pyenv's shim is on PATH also where its Python is switched off."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == wanted


def _checked(command: Sequence[str | Path], reason: str) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode == 0:
        return
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    last = (errors or lines or [f"exit status {done.returncode}"])[-1]
    raise UnavailableError(f"{reason} ({last.rstrip('.')})")
