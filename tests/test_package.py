"""What pip and a package index make of the repository: wheels, the source distribution,
the readme, the metadata.
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import ostraka

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SETUP = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
NATIVE = Path("src/ostraka/nets/native")

index_readme: Callable[[str], str] = SETUP["index_readme"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with its own build files and a kernel that takes no time to
    compile, in a path with a space.
    """
    copy = tmp_path_factory.mktemp("a path")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    (copy / NATIVE).mkdir(parents=True)
    for part in ("", "nets", "nets/native"):
        (copy / "src/ostraka" / part / "__init__.py").write_text('__version__ = "7.8.9"\n')
    (copy / "src/ostraka/py.typed").touch()
    (copy / NATIVE / "lanes.h").touch()
    (copy / NATIVE / "kernel.cpp").write_text(
        'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }\n'
    )
    return copy


def build(folder: Path, *words: str, compiler: str = "") -> None:
    """Run setup.py with these words; `compiler` in the place of the usual one."""
    given = {"CC": compiler, "CXX": compiler} if compiler else {}
    command = [sys.executable, "setup.py", "-q", *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def only(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


@pytest.mark.skipif(
    shutil.which("c++") is None, reason="without a compiler there is no kernel to pack"
)
def test_a_wheel_with_kernels_is_for_every_python_of_one_platform(
    small: Path, tmp_path: Path
) -> None:
    build(small, "bdist_wheel", "-d", str(tmp_path), "-b", str(tmp_path.with_suffix(".b")))
    wheel = only(tmp_path)
    assert re.fullmatch(r"ostraka-7\.8\.9-py3-none-(linux|macosx)_\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    built = {Path(name).name for name in names if name.endswith(".so")}
    assert "_kernel_base.so" in built
    assert built <= {"_kernel_base.so", "_kernel_v3.so", "_kernel_v4.so"}, (
        "no name tells a version of Python"
    )
    assert "ostraka/py.typed" in names


def test_a_wheel_without_kernels_is_for_every_system(small: Path, tmp_path: Path) -> None:
    shutil.rmtree(small / "build", ignore_errors=True)
    build(
        small,
        "bdist_wheel",
        "-d",
        str(tmp_path),
        "-b",
        str(tmp_path.with_suffix(".b")),
        compiler="false",
    )
    wheel = only(tmp_path)
    assert wheel.name == "ostraka-7.8.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as content:
        assert not [name for name in content.namelist() if name.endswith(".so")]
        assert "Root-Is-Purelib: true" in content.read("ostraka-7.8.9.dist-info/WHEEL").decode()


@pytest.mark.skipif(
    shutil.which("c++") is None, reason="without a compiler there is no kernel to find"
)
def test_kernels_are_found_where_an_editable_install_puts_them(small: Path) -> None:
    """`library.py` looks for the very names that setup.py gives."""
    build(small, "build_ext", "--inplace", "-t", str(small / "build"))
    shutil.copy(ROOT / NATIVE / "library.py", small / NATIVE)
    try:
        library = runpy.run_path(str(small / NATIVE / "library.py"))
        found = library["_find"]("base")
        assert found == small / NATIVE / "_kernel_base.so"
        assert library["ctypes"].CDLL(str(found)).answer() == 42
    finally:
        for kernel in (small / NATIVE).glob("*.so"):
            kernel.unlink()


def test_a_library_of_an_older_build_is_not_taken(tmp_path: Path) -> None:
    """Names with a version of Python were once used.

    Such a file may still lie beside the new one.
    """
    shutil.copy(ROOT / NATIVE / "library.py", tmp_path)
    (tmp_path / f"_kernel_base.cpython-3{sys.version_info[1]}-x86_64-linux-gnu.so").touch()
    assert runpy.run_path(str(tmp_path / "library.py"))["_find"]("base") is None


def test_the_source_distribution_has_all_that_make_test_needs(tmp_path: Path) -> None:
    (tmp_path / "info").mkdir()
    build(ROOT, "egg_info", "-e", str(tmp_path / "info"), "sdist", "-d", str(tmp_path / "dist"))
    with tarfile.open(only(tmp_path / "dist")) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "Makefile",
        "constraints.txt",
        "CHANGELOG.md",
        "LICENSE",
        "README.md",
        "setup.py",
        "pyproject.toml",
    }
    for folder in ("benchmarks", "docs", "examples", "src/ostraka", "tests"):
        files = (
            path
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and path.suffix not in (".pyc", ".so")
        )
        wanted |= {str(path.relative_to(ROOT)) for path in files}
    assert wanted - packed == set()
    assert [name for name in packed if name.endswith((".pyc", ".so"))] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [what exists](#what-exists)", "see what exists"),
        ("([why](docs/results/fedpd.md))", "(why: docs/results/fedpd.md)"),
        ("[docs/data.md](docs/data.md) has more", "docs/data.md has more"),
        ("[examples/](examples) has more", "examples/ has more"),
        ("[two\nlines](docs/data.md#top)", "two\nlines: docs/data.md#top"),
        ("[a site](https://example.org) stays", "[a site](https://example.org) stays"),
        ("`--data domains:A+B[,size=N]` (text)", "`--data domains:A+B[,size=N]` (text)"),
    ],
)
def test_links_in_the_readme_of_the_index(text: str, shown: str) -> None:
    assert index_readme(text) == shown


def test_the_readme_of_the_index_has_no_link_into_the_repository() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"\]\((?!\w+://)", readme), (
        "README itself has such links, or this test would see nothing"
    )
    assert not re.search(r"\]\((?!\w+://)", index_readme(readme))


def test_the_version_is_written_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    written = [
        p
        for p in ROOT.glob("*.*")
        if p.suffix in (".py", ".toml") and ostraka.__version__ in p.read_text()
    ]
    assert written == []


def test_the_classifiers_name_the_versions_of_python_that_are_tested() -> None:
    named = {
        c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", c)
    }
    assert named == {"3.11", "3.12", "3.13"}
    assert PROJECT["requires-python"] == ">=3.11"
    assert not any(c.startswith("License ::") for c in PROJECT["classifiers"]), (
        "the licence is the SPDX expression"
    )
