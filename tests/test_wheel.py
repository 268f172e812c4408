"""The wheel: what is in it, and that it works where nothing but its dependencies is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import likely

ROOT = Path(__file__).resolve().parents[1]
SMOKE = """
import sys, likely as lk
from pathlib import Path
assert Path(lk.__file__).is_relative_to(sys.prefix), lk.__file__
X, y = [[0.0, 1.0], [1.0, 0.5], [9.0, 3.0], [11.0, 2.0]] * 5, ["low", "low", "high", "high"] * 5
clf = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(X, y)
lk.save(clf, Path(sys.prefix) / "model.likely")
print(lk.__version__, *lk.load(Path(sys.prefix) / "model.likely").predict([[2.0, 1.0], [8.0, 2.0]]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def empty_environment(wheel, tmp_path_factory) -> Path:
    """An environment with the wheel alone, to which the dependencies of this one are visible."""
    env = tmp_path_factory.mktemp("empty") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    python = env / "bin" / "python"
    owner = sys.executable if find_spec("pip") else getattr(sys, "_base_executable", sys.executable)
    install = [owner, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    (site,) = env.glob("lib/python*/site-packages")
    # a folder named in a .pth file is searched last, and its own .pth files (this project's) are not read
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return env


def run_in(env: Path, *command: str) -> str:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=env, env=outside, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_the_package_its_types_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name == f"likely-{likely.__version__}-py3-none-any.whl"
    assert {name.split("/")[0] for name in names} == {"likely", f"likely-{likely.__version__}.dist-info"}
    inside = {name.removeprefix("likely/") for name in names if name.startswith("likely/")}
    wanted = {
        path.relative_to(ROOT / "src" / "likely").as_posix()
        for path in (ROOT / "src" / "likely").rglob("*")
        if path.suffix in {".py", ".pyi"} or path.name == "py.typed"
    }
    assert wanted <= inside and "py.typed" in inside and "__init__.pyi" in inside
    assert not [name for name in names if name.endswith((".pyc", ".nbi", ".nbc")) or "test" in name.split("/")]


@pytest.mark.slow
def test_it_works_in_an_empty_environment(empty_environment):
    python = str(empty_environment / "bin" / "python")
    assert run_in(empty_environment, python, "-c", SMOKE).split() == [likely.__version__, "low", "high"]


@pytest.mark.slow
def test_the_command_is_installed(empty_environment):
    command = str(empty_environment / "bin" / "likely")
    assert "fit" in run_in(empty_environment, command, "--help")
    assert likely.__version__ in run_in(empty_environment, command, "--version")


def test_the_changelog_has_a_section_of_this_version():
    assert f"\n## {likely.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
