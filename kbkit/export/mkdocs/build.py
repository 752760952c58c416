"""Built sites: made by MkDocs in a process of its own, and served on this machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from kbkit.errors import ExportError
from kbkit.export.files import writing
from kbkit.export.manifest import MANIFEST
from kbkit.export.mkdocs.project import CONFIG, DOCS, HTML, is_ours
from kbkit.export.mkdocs.python_process import run_python
from kbkit.web_server import serve_folder

MARKER = ".kbkit-site"
"""Marks a folder of HTML as one that a build may empty; MkDocs leaves names with dots alone."""


def build_site(project: Path, *, strict: bool = True) -> Path:
    """Build a MkDocs project into HTML; nothing is done when it is as it was built last.

    Args:
        project: Folder with the ``mkdocs.yml`` that `write_project` made.
        strict: Let warnings of MkDocs fail the build.

    Returns:
        The folder of the site.

    Raises:
        ExportError: The build failed; the message has MkDocs' own lines.
        MissingExtraError: MkDocs is not installed.
    """
    site = project / HTML
    state = f"{strict} {_state(project)}"
    if is_ours(project) and _built_from(site) == state:
        return site
    _claim(site)
    # not --quiet: it hides warnings from strict mode too
    options = ["--config-file", str(project / CONFIG), "--site-dir", str(site.resolve())]
    done = run_python("mkdocs", "build", *options, *(["--strict"] if strict else []))
    if done.returncode:
        errors = _error_lines(done.stdout + done.stderr)
        raise ExportError(f"{project}: MkDocs could not build the site:\n{errors}")
    (site / MARKER).write_text(state, encoding="utf-8")
    return site


@contextmanager
def serve_site(site: Path, port: int = 0) -> Iterator[str]:
    """Serve a built site to this machine while the block runs.

    Args:
        site: Its folder, or that of the MkDocs project which it was built from.
        port: Port on 127.0.0.1; 0 takes a free one.

    Yields:
        Its address, ending in ``/``.

    Raises:
        ExportError: There is no site in the folder.
        ConfigError: The port is taken.
    """
    folder = find_site(site)
    if folder is None:
        raise ExportError(f"{site}: no site here (index.html is missing); export one first")
    with serve_folder(folder, port) as address:
        yield address


def find_site(folder: Path) -> Path | None:
    """The folder of a built site: the one that is given, or the one in a project of that name."""
    places = (folder, folder / HTML)
    return next((place for place in places if (place / "index.html").is_file()), None)


def _state(project: Path) -> str:
    """Identifies what a build reads: pages by size and time, the rest by what it says."""
    state = hashlib.blake2b(digest_size=16)
    state.update(version("kbkit").encode() + version("mkdocs-material").encode())
    for path in sorted((project / DOCS).rglob("*")):
        name = path.relative_to(project).as_posix()
        if path.is_file() and not path.name.startswith("."):
            about = path.stat()
            state.update(f"{name} {about.st_size} {about.st_mtime_ns}\n".encode())
    for path in (project / CONFIG, project / DOCS / MANIFEST):
        if path.is_file():
            state.update(path.read_bytes())
    return state.hexdigest()


def _built_from(site: Path) -> str:
    """What the site was built from; empty where a build did not end, or none began."""
    if not (site / "index.html").is_file() or not (site / MARKER).is_file():
        return ""
    return (site / MARKER).read_text(encoding="utf-8")


def _claim(site: Path) -> None:
    """Make sure that MkDocs, which empties the folder, destroys nothing of somebody else's."""
    with writing(site, "the site"):
        if site.is_dir() and any(site.iterdir()) and not (site / MARKER).exists():
            raise ExportError(
                f"{site}: holds files that kbkit did not write, and building would delete them; "
                "move them away or choose another folder"
            )
        site.mkdir(parents=True, exist_ok=True)
        (site / MARKER).write_text("", encoding="utf-8")


def _error_lines(output: str) -> str:
    """The lines of MkDocs' output that say what is wrong, 20 at most."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in output.splitlines()]
    lines = [line for line in lines if line.strip()]
    errors = [line for line in lines if re.match(r"(WARNING|ERROR|CRITICAL|Error|Aborted)", line)]
    return "\n".join((errors or lines)[-20:])
