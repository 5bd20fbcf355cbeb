"""Builds the native convolution kernel and the package's own readme.

All else about the package is in pyproject.toml. The same source is compiled once per
instruction-set level and loaded with ctypes, so neither torch nor Python headers are needed, and
one wheel serves every Python 3. The extensions are optional: without a C++ compiler the install
succeeds, ostraka falls back to torch, and the wheel is good for every system.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

# Exactly the features that ostraka_cpu_level() in kernel.cpp asks the processor for.
V3 = ["-mavx2", "-mfma"]
V4 = [*V3, "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq"]
LEVELS = (
    {"base": [], "v3": V3, "v4": V4} if platform.machine() in ("x86_64", "AMD64") else {"base": []}
)

# No -ffast-math: linked into a process it changes how every other library treats denormal numbers.
FLAGS = ["-std=c++17", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
         "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-Wno-psabi", "-g0"]  # fmt: skip
FOLDER = "src/ostraka/nets/native"
SUFFIX = ".so"
"""Of the libraries on every system, as library.py looks for them: no version of Python in it."""
LINK = re.compile(r"\[([^\]]+)\]\((?!\w+://)([^)]*)\)")


class BuildKernel(build_ext):
    """Plain shared libraries: there is no Python module initialiser to export."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """None beyond those the source marks itself."""
        return []

    def get_libraries(self, ext: Extension) -> list[str]:
        """No Python library: what is linked with one version would not load in another."""
        return []

    def get_ext_filename(self, fullname: str) -> str:
        """The name alone, without the Python that happens to build it."""
        return os.path.join(*fullname.split(".")) + SUFFIX

    def build_extension(self, ext: Extension) -> None:
        """All levels share one source file, so each needs its own place for the object file."""
        shared = self.build_temp
        self.build_temp = f"{shared}/{ext.name.rpartition('.')[2]}"
        try:
            super().build_extension(ext)
        finally:
            self.build_temp = shared


class AnyPythonWheel(bdist_wheel):
    """A wheel for every Python 3: of one platform, or of any where no kernel could be built."""

    def get_tag(self) -> tuple[str, str, str]:
        """Asked for when everything to be packed is in place."""
        built = any(Path(self.bdist_dir).rglob(f"_kernel_*{SUFFIX}"))
        self.root_is_pure = not built
        return "py3", "none", super().get_tag()[2]


def index_readme(text: str) -> str:
    """README for a package index: a link to a file of the repository leads nowhere there, so the
    file's name stands instead.
    """

    def plain(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        return (
            words if target.startswith("#") or words.rstrip("/") == target else f"{words}: {target}"
        )

    return LINK.sub(plain, text)


if __name__ == "__main__":
    setup(
        package_dir={"": "src"},
        long_description=index_readme(
            Path(__file__).with_name("README.md").read_text(encoding="utf-8")
        ),
        long_description_content_type="text/markdown",
        ext_modules=[
            Extension(
                f"ostraka.nets.native._kernel_{level}",
                sources=[f"{FOLDER}/kernel.cpp"],
                depends=sorted(str(path) for path in Path(FOLDER).glob("*.h")),
                language="c++",
                extra_compile_args=[] if sys.platform == "win32" else [*FLAGS, *flags],
                optional=True,
            )
            for level, flags in LEVELS.items()
        ],
        cmdclass={"build_ext": BuildKernel, "bdist_wheel": AnyPythonWheel},
    )
