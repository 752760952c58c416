"""Tools that make sets of pages: programs, packages of Debian, PyPI and npm, and source texts."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Sequence
from pathlib import Path

PYTHON = Path("/usr/share/doc/python3.11/html/_sources")
NOT_PAGES = re.compile(r"(^|/)(404|genindex|search|searchindex|print|_print)\.html$")


class Maker:
    """Make sets in ``folder``; tools and packages stay in its ``tools``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        self.tools.mkdir(parents=True, exist_ok=True)

    def run(self, *command: str | Path, at: Path | None = None, **environment: str) -> None:
        """Run a program quietly; text is split into words as a shell does.

        Raises:
            CalledProcessError: It failed; the end of its output is printed.
        """
        done = subprocess.run(
            _words(command),
            cwd=at or self.tools,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=900,
            env={**os.environ, **environment},
        )
        if done.returncode:
            print((done.stdout + done.stderr)[-2000:], file=sys.stderr)
            done.check_returncode()

    def attempt(self, *command: str | Path) -> None:
        """Run a program for one of many parts; a failure leaves that part out."""
        subprocess.run(
            _words(command), cwd=self.tools, capture_output=True, check=False, timeout=300
        )

    def debian(self, package: str) -> Path:
        """Unpack a Debian package without installing it and return its files."""
        place = self.tools / "debian" / package
        if not place.is_dir():
            place.mkdir(parents=True)
            self.run("apt-get", "download", package, at=place)
            archive = next(place.glob("*.deb"))
            self.run("dpkg", "-x", archive, place)
            archive.unlink()
        return place

    def source(self, package: str) -> Path:
        """Return the upstream sources of a Debian package."""
        place = self.tools / "source" / package
        if not place.is_dir():
            lists = self.tools / "lists"
            (lists / "partial").mkdir(parents=True, exist_ok=True)
            listed = self.tools / "sources.list"
            only = (
                f"Dir::Etc::sourcelist={listed}",
                "Dir::Etc::sourceparts=-",
                f"Dir::State::lists={lists}",
            )
            options = [part for one in only for part in ("-o", one)]
            if not listed.is_file():
                listed.write_text(self._distribution(), "utf-8")
                self.run("apt-get", *options, "update")
            fetched = self.fresh(f"source-{package}")
            self.run("apt-get", *options, "source", "--download-only", package, at=fetched)
            with tarfile.open(next(fetched.glob("*.orig.tar.*[!c]"))) as archive:
                archive.extractall(place, filter="data")
        return next(one for one in place.iterdir() if one.is_dir())

    def _distribution(self) -> str:
        """Return this system's package archive, with sources enabled."""
        form = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)"
        listed = subprocess.run(
            ["apt-get", "indextargets", "--format", form, "Created-By: Packages", "Origin: Debian"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return "".join(f"{line}\n" for line in dict.fromkeys(listed.stdout.splitlines()))

    def python(self, *packages: str, place: str = "venv") -> Path:
        """Return the programs of an environment with packages of PyPI."""
        folder = self.tools / place
        if not folder.is_dir():
            venv.create(folder, with_pip=True)
        self.run(folder / "bin/pip", "install", "--quiet", *packages)
        return folder / "bin"

    def npm(self, *packages: str, name: str = "npm") -> Path:
        """Return the folder of an npm project with packages."""
        place = self.tools / name
        place.mkdir(exist_ok=True)
        if not all((place / "node_modules" / one.partition("~")[0]).is_dir() for one in packages):
            wanted = [one.replace("~", "@") for one in packages]
            self.run("npm", "install", "--silent", "--no-audit", "--no-fund", *wanted, at=place)
        return place

    def fresh(self, name: str) -> Path:
        """Make an empty folder beside the tools."""
        place = self.tools / "work" / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place

    def node_markdown(self, target: Path) -> None:
        """Return Node's manual as Markdown for any generator."""
        target.mkdir(parents=True, exist_ok=True)
        for page in sorted((self.debian("nodejs-doc") / "usr/share/doc/nodejs/api").glob("*.md*")):
            raw = page.read_bytes()
            text = (gzip.decompress(raw) if page.suffix == ".gz" else raw).decode("utf-8")
            text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
            (target / page.name.removesuffix(".gz")).write_text(text.lstrip(), "utf-8")

    def keep(self, name: str, built: Path) -> None:
        """Copy only the pages of a site to its set."""
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        for page in sorted(built.rglob("*.html")):
            place = page.relative_to(built).as_posix()
            if page.is_file() and not NOT_PAGES.search(place):
                (target / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page, target / place)


def _words(command: Sequence[str | Path]) -> list[str]:
    return [
        word
        for part in command
        for word in (shlex.split(part) if isinstance(part, str) else [str(part)])
    ]


def escaped(page: Path) -> str:
    """Escape Vue's markup in Markdown outside of code."""
    pieces = re.split(r"(^ *```.*?^ *```$|`[^`\n]+`)", page.read_text("utf-8"), flags=re.S | re.M)
    return "".join(
        piece if place % 2 else re.sub(r"<(?!https?:)", "&lt;", piece).replace("{{", "{ {")
        for place, piece in enumerate(pieces)
    )
