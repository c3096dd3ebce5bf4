"""The reference's environment: its own folder and packages, with torch and transformers borrowed from ours.

The packages come from the index without their dependencies; what they import beyond ours is listed here. Nothing is
stubbed: `nemo_automodel.components.datasets` and `trl.data_utils` import as they are, and of LLaMA-Factory the one file
that holds its planner is loaded by itself.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PACKAGES = {
    "nemo-automodel": "0.7.0",
    "torchdata": "0.11.0",  # its loader's StatefulDataLoader
    "trl": "1.16.0",
    "llamafactory": "0.9.5",
    "peft": "0.18.1",  # LLaMA-Factory's collator and its arguments import these two
    "omegaconf": "2.4.0",
}


class Reference:
    """The environment in a folder, made on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed: dict[str, str] = {}

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def install(self) -> None:
        """Create it and install what is missing. What cannot be installed is remembered with the reason."""
        if not self.python.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.folder)], check=True)
        (self._packages() / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
        for name, version in PACKAGES.items():
            if self.version(name) != version:
                self._install_one(name, version)

    def version(self, name: str) -> str | None:
        """The installed version of one of its own packages."""
        stem = name.replace("-", "_")
        found = sorted(self._packages().glob(f"{stem}-*.dist-info")) if self.python.exists() else []
        return found[0].name.removeprefix(f"{stem}-").removesuffix(".dist-info") if found else None

    def why_not(self, name: str) -> str | None:
        """Why a package is not there; `None` where it is."""
        if self.version(name) is not None:
            return None
        return self.failed.get(name, f"{name} {PACKAGES[name]} is not installed")

    def _install_one(self, name: str, version: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet", "--no-deps"]
        done = subprocess.run(
            [*command, "--disable-pip-version-check", f"{name}=={version}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["pip said nothing"]
            self.failed[name] = f"{name} {version} cannot be installed: {said[-1]}"

    def _packages(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"
