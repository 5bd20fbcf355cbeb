"""Builds the native convolution kernel; everything else about the package is in pyproject.toml.

The same source is compiled once per instruction-set level and loaded with ctypes, so neither torch nor Python headers
are needed. The extensions are optional: without a C++ compiler the install succeeds and ostraka falls back to torch.
"""

from __future__ import annotations

import platform
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Exactly the features that ostraka_cpu_level() in kernel.cpp asks the processor for.
V3 = ["-mavx2", "-mfma"]
V4 = [*V3, "-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq"]
LEVELS = {"base": [], "v3": V3, "v4": V4} if platform.machine() in ("x86_64", "AMD64") else {"base": []}

# No -ffast-math: linked into a process it changes how every other library treats denormal numbers.
FLAGS = ["-std=c++17", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fno-exceptions",
         "-fno-rtti", "-fvisibility=hidden", "-Wno-psabi", "-g0"]  # fmt: skip
FOLDER = "src/ostraka/nets/native"


class BuildKernel(build_ext):
    """Plain shared libraries: there is no Python module initialiser to export."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """None beyond those the source marks itself."""
        return []

    def build_extension(self, ext: Extension) -> None:
        """All levels share one source file, so each needs its own place for the object file."""
        shared = self.build_temp
        self.build_temp = f"{shared}/{ext.name.rpartition('.')[2]}"
        try:
            super().build_extension(ext)
        finally:
            self.build_temp = shared


setup(
    package_dir={"": "src"},
    ext_modules=[
        Extension(
            f"ostraka.nets.native._kernel_{level}",
            sources=[f"{FOLDER}/kernel.cpp"],
            depends=[f"{FOLDER}/lanes.h"],
            language="c++",
            extra_compile_args=[] if sys.platform == "win32" else [*FLAGS, *flags],
            optional=True,
        )
        for level, flags in LEVELS.items()
    ],
    cmdclass={"build_ext": BuildKernel},
)
