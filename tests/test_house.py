"""The house is in order: locks, Makefile, CI entry, Docker files and the root scripts agree."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.txt", "requirements-dev.txt")
PYTHONS = ("3.11", "3.12", "3.13")
SCRIPTS = ("train_baselines.py", "run_baselines.py", "benchmark_atari_head.py")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(name: str) -> str:
    return (ROOT / name).read_text()


def locked(name: str, python: str) -> dict[str, str]:
    """Package -> version that the lock file installs on Linux for `python`."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_python_implementation": "CPython",
    }
    pins: dict[str, str] = {}
    for pin in pins_of(name):
        if pin.marker is None or pin.marker.evaluate(environment):
            assert canonicalize_name(pin.name) not in pins, f"{pin.name} is locked twice"
            pins[canonicalize_name(pin.name)] = next(iter(pin.specifier)).version
    return pins


def pins_of(name: str) -> Iterator[Requirement]:
    for line in read(name).splitlines():
        if text := line.split("#")[0].strip():
            yield Requirement(text)


def named_packages(requirements: list[str]) -> list[Requirement]:
    """The requirements that an index serves: all but the package that lives in this repository."""
    return [r for r in map(Requirement, requirements) if r.name != "streaming-image-env"]


# --- lock files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_locked_within_its_range(lock: str, python: str) -> None:
    pins = locked(lock, python)
    for wanted in named_packages(PROJECT["dependencies"]):
        version = pins.get(canonicalize_name(wanted.name))
        assert version, f"{wanted.name} is not locked; run make lock"
        assert wanted.specifier.contains(version), f"{wanted}: {version} is locked; run make lock"


@pytest.mark.parametrize("python", PYTHONS)
def test_the_developers_lock_is_the_users_lock_and_the_tools(python: str) -> None:
    core, everything = (locked(lock, python) for lock in LOCKS)
    assert core.items() <= everything.items()
    for wanted in named_packages(PROJECT["optional-dependencies"]["dev"]):
        version = everything.get(canonicalize_name(wanted.name))
        assert version, f"{wanted.name} is not locked; run make lock"
        assert wanted.specifier.contains(version), f"{wanted}: {version} is locked; run make lock"


def test_what_streaming_image_env_needs_is_locked() -> None:
    project = tomllib.loads(read("streaming-image-env/pyproject.toml"))["project"]
    pins = locked("requirements.txt", "3.11")
    for wanted in named_packages(project["dependencies"]):
        assert wanted.specifier.contains(pins[canonicalize_name(wanted.name)])
    assert project["requires-python"] == PROJECT["requires-python"]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_exact_versions(lock: str) -> None:
    for pin in pins_of(lock):
        assert [s.operator for s in pin.specifier] == ["=="], str(pin)
        assert pin.url is None, str(pin)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_says_how_it_was_made_and_names_no_address_or_path(lock: str) -> None:
    text = read(lock)
    assert re.search(rf"uv pip compile .*pyproject\.toml -o {re.escape(lock)}$", text, re.M)
    assert not re.search(r"://|file:|--(extra-)?index|--find-links|^-e |(^|\s)/\w", text, re.M)


def test_the_locked_python_versions_are_the_supported_ones() -> None:
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    classifiers = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    assert tuple(classifiers) == PYTHONS


def test_the_ranges_allow_the_versions_that_procgen_needs() -> None:
    ranges = {r.name: r.specifier for r in named_packages(PROJECT["dependencies"])}
    assert all(ranges["numpy"].contains(v) for v in ("1.26.4", "2.4.6"))
    assert all(ranges["opencv-python-headless"].contains(v) for v in ("4.11.0.86", "5.0.0.93"))


def test_the_extras_are_there() -> None:
    assert {"gpu", "procgen", "torch", "onnx", "cluster", "dev"} <= set(
        PROJECT["optional-dependencies"]
    )


# --- make and CI --------------------------------------------------------------------------------


# These tests may themselves run under make, which tells its children so.
NOT_UNDER_MAKE = os.environ | {"MAKEFLAGS": "", "MFLAGS": "", "MAKELEVEL": "0"}


def dry_run(*arguments: str) -> list[str]:
    """The commands that make would run."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *arguments],
        cwd=ROOT,
        env=NOT_UNDER_MAKE,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.splitlines()


def test_make_test_sets_up_checks_and_ends_with_pytest(tmp_path: Path) -> None:
    commands = dry_run("test", f"VENV={tmp_path / 'venv'}")
    steps = ("-m venv", "requirements-dev.txt", "ruff check", "ruff format --check", "mypy")
    order = [next(i for i, c in enumerate(commands) if step in c) for step in steps]
    order.append(next(i for i, c in enumerate(commands) if "lint-imports" in c))
    assert order == sorted(order)
    assert "pytest" in commands[-1]


def test_make_demo_sets_up_and_runs_the_demo(tmp_path: Path) -> None:
    commands = dry_run("demo", f"VENV={tmp_path / 'venv'}")
    assert any("-m venv" in command for command in commands)
    assert commands[-1].endswith("scripts/demo.py")
    assert (ROOT / "scripts/demo.py").is_file()


@pytest.mark.parametrize("target", ["lint", "format", "lock", "clean", "docker-check", "help"])
def test_make_has_the_target(target: str) -> None:
    assert dry_run(target)


def test_make_clean_spares_the_environment_and_the_results() -> None:
    removed = [c for c in dry_run("clean") if c.startswith("rm ")]
    assert removed
    assert not re.search(r"(^|\s)(\.venv|out)(\s|/|$)", " ".join(removed))


@pytest.mark.parametrize("version", ["Python 3.9.2", None])
def test_make_names_the_python_that_will_not_do(tmp_path: Path, version: str | None) -> None:
    python = tmp_path / "python-of-yesterday"
    if version:
        python.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} && exit 0\nexit 1\n')
        python.chmod(0o755)
    done = subprocess.run(
        ["make", "setup", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        env=NOT_UNDER_MAKE,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert f"'{python}' is {version or 'not there'}" in done.stderr
    assert "make PYTHON=" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_ci_runs_the_readmes_test_command() -> None:
    commands = [line for line in read(".ci/run").splitlines() if "make" in line]
    assert commands == ["exec make test"]
    assert re.search(r"^(\$ )?make test\b", read("README.md"), re.M)
    subprocess.run(["bash", "-n", ROOT / ".ci/run"], check=True, timeout=60)


def test_ci_passes_the_exit_status_on(tmp_path: Path) -> None:
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "$PWD $*"\nexit 7\n')
    make.chmod(0o755)
    done = subprocess.run(
        ["bash", ROOT / ".ci/run"],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 7
    assert done.stdout.split() == [str(ROOT), "test"]


# --- Docker -------------------------------------------------------------------------------------


def run_lines(name: str) -> list[str]:
    """The `docker run` lines of a page, each joined to one line."""
    return re.findall(r"^docker run .*$", read(name).replace("\\\n", " "), re.M)


def test_the_documented_run_lines_name_scripts_that_the_image_has() -> None:
    (copied,) = re.findall(r"^COPY (.*\.py) \./$", read("Dockerfile"), re.M)
    assert set(copied.split()) == set(SCRIPTS)
    lines = run_lines("docs/docker.md")
    shown = {script for line in lines for script in re.findall(r"\S+\.py", line)}
    assert shown == set(SCRIPTS)
    for line in lines + run_lines("README.md"):
        assert set(re.findall(r"\S+\.py", line)) <= set(SCRIPTS)
        assert "--user" in line, line
        assert ":/work/out" in line, line


def test_what_the_dockerfile_copies_is_there_and_not_ignored() -> None:
    allowed = {line[1:] for line in read(".dockerignore").splitlines() if line.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.*) \S+$", read("Dockerfile"), re.M)
    sources = {source for copy in copies for source in copy.split()} - {"."}
    assert sources <= allowed
    built_from = {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]}
    assert built_from | {"fl_saliency", "streaming-image-env"} <= allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_the_image_takes_a_base_and_extras_and_is_not_roots() -> None:
    text = read("Dockerfile")
    assert "ARG BASE_IMAGE=debian:12-slim" in text
    assert 'ARG EXTRAS=""' in text
    assert re.findall(r"^USER (\d+):\d+$", text, re.M)[-1] != "0"
    assert not re.search(r"https?://|PIP_CERT", text)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["train_baselines.py", "--seed", "a b"],
            ["python", "train_baselines.py", "--seed", "a b"],
        ),
        (["fls", "networks"], ["fls", "networks"]),
    ],
)
def test_the_entry_point_runs_scripts_under_python_and_commands_as_they_are(
    tmp_path: Path, arguments: list[str], expected: list[str]
) -> None:
    for name in ("python", "fls"):
        (tmp_path / name).write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n')
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["sh", ROOT / "docker/entrypoint.sh", *arguments],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == expected


def test_the_check_runs_what_the_image_is_for() -> None:
    subprocess.run(["bash", "-n", ROOT / "docker/check.sh"], check=True, timeout=60)
    assert all(f"in_image {script}" in read("docker/check.sh") for script in SCRIPTS)


# --- root scripts -------------------------------------------------------------------------------


def is_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_root_script_is_imports_and_a_guard(script: str) -> None:
    docstring, *body = ast.parse(read(script)).body
    assert isinstance(docstring, ast.Expr)
    *imports, guard = body
    assert all(isinstance(node, ast.Import | ast.ImportFrom) for node in imports)
    assert is_guard(guard)
    assert ast.unparse(guard).endswith("sys.exit(main())")


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_answers_without_tensorflow(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", ROOT / script, "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "fl_saliency" in imported
    assert not imported & {"tensorflow", "keras"}
    assert "--output-dir" in done.stdout


# --- Documentation ------------------------------------------------------------------------------


PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#][^)]*)\)", page.read_text()):
        if not target.startswith(("https://", "http://")):
            assert (page.parent / target.split("#")[0]).exists(), target
