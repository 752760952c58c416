"""Time and memory of exporting a site, beside MkDocs itself.

    python benchmarks/export.py [--no-mkdocs] [DOCUMENTS ...]

For each number of documents (by default 1,000), in seconds of one core's processor time:

- ``fit``: fitting the query encoder. The first export does it and keeps the result in the catalog
  until a fifth of the chunks has changed;
- ``first``: the rest of the first export: related passages, pages, index;
- ``again``: the same when nothing has changed;
- ``changed``: the same after one document has changed, with its neighbours' pages and the index;
- ``mkdocs``: `mkdocs build` of the project, all pages rendered by kbkit's plugin;
- ``mkdocs again``: the same after that change;
- ``plain``: `mkdocs build` of the same pages as plain Markdown, by Material without the plugin,
  with the extensions for code and tables that its documentation recommends;
- ``share``: ``first``, without and with ``fit``, as a share of ``mkdocs`` and of ``plain``.
  The goal is a tenth.

Memory is the peak of each process. Documents are the API of the installed pandas, repeated under
other names for larger numbers. Each step runs in its own process with one thread, because threads
of linear algebra spend time waiting. The table is also written to ``build/bench/export.md``.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _corpora import report, table

import kbkit
from kbkit.recipes import JsonlSource, PackageSource

BAR = 0.10
_PANDAS = 1_900
_ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
_PLAIN = """\
site_name: plain
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.sections, navigation.prune, toc.follow, search.suggest, content.code.copy]
markdown_extensions: [attr_list, tables, pymdownx.highlight, pymdownx.superfences]
plugins: [search]
validation:
  omitted_files: ignore
  not_found: ignore
"""


def fill(folder: Path, number: int) -> None:
    """Fill a knowledge base with documents."""
    with kbkit.open(folder / "kb") as workspace:
        source = workspace.create("source")
        source.ingest(PackageSource(name="pandas", limit=min(number, _PANDAS)))
        pages = list(source.documents)
        with (folder / "pages.jsonl").open("w", encoding="utf-8") as file:
            for index in range(number):
                page = pages[index % len(pages)]
                more = f".version{index // len(pages)}" if index >= len(pages) else ""
                values = {"uri": page.uri + more, "title": page.title + more, "text": page.content}
                file.write(json.dumps(values) + "\n")
        workspace.create("docs").ingest(JsonlSource(path=str(folder / "pages.jsonl")))
        workspace.delete("source")


def change(folder: Path) -> None:
    """Change one document."""
    path = folder / "pages.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    values = json.loads(first)
    values["text"] += "\n\nOne more paragraph, about the weather."
    path.write_text("\n".join([json.dumps(values), *rest]) + "\n", encoding="utf-8")
    with kbkit.open(folder / "kb") as workspace:
        workspace["docs"].refresh()


def fit(folder: Path) -> dict[str, Any]:
    """Fit the query encoder and print its cost."""
    with kbkit.open(folder / "kb") as workspace:
        began = time.process_time()
        workspace["docs"].chunks.fit_query_encoder()
        return {"seconds": time.process_time() - began}


def export(folder: Path) -> dict[str, Any]:
    """Export and print the cost."""
    with kbkit.open(folder / "kb") as workspace:
        kb = workspace["docs"]
        began = time.process_time()
        report = kb.export(folder=folder / "project", build=False)
        seconds = time.process_time() - began
    return {
        "seconds": seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,  # of kB on Linux
        "written": report.written,
        "stages": {name: round(value, 2) for name, value in report.seconds.items()},
    }


def built(project: Path) -> dict[str, float]:
    """Return processor time and peak memory of `mkdocs build`."""
    command = ["-c", _MEASURED, sys.executable, "-m", "mkdocs", "build", "--quiet"]
    done = subprocess.run(  # another process, whose only child is MkDocs
        [sys.executable, *command],
        cwd=project,
        env={**_ONE_THREAD, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, memory = map(float, done.stdout.split()[-2:])
    return {"seconds": seconds, "memory": memory / 1024}


def plain(folder: Path) -> Path:
    """Make a project of the same pages without the plugin."""
    project = folder / "plain"
    index = shutil.ignore_patterns("search", ".*")
    shutil.copytree(folder / "project" / "docs", project / "docs", ignore=index)
    (project / "mkdocs.yml").write_text(_PLAIN, encoding="utf-8")
    return project


def measure(number: int, *, mkdocs: bool) -> list[str]:
    """Return a row of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step("fill", folder, number)
        fitted = step("fit", folder, number)["seconds"]
        first = step("export", folder, number)
        again = step("export", folder, number)
        site = built(folder / "project") if mkdocs else None
        bare = built(plain(folder)) if mkdocs else None
        step("change", folder, number)
        changed = step("export", folder, number)
        rebuilt = built(folder / "project") if mkdocs else None
    print(
        f"{number:,}: {first['stages']}, {again['written']} files written again, "
        f"{changed['written']} after one change",
        file=sys.stderr,
    )
    cells = [f"{number:,}", f"{fitted:.1f}"]
    cells += [f"{took['seconds']:.1f}" for took in (first, again, changed)]
    cells += [_seconds(took) for took in (site, rebuilt, bare)]
    cells += [_share(first["seconds"], fitted, took) for took in (site, bare)]
    memory = [first, *filter(None, (site,))]
    return [*cells, ", ".join(f"{took['memory']:.0f} MB" for took in memory)]


def _seconds(took: dict[str, float] | None) -> str:
    return "-" if took is None else f"{took['seconds']:.1f}"


def _share(first: float, fitted: float, took: dict[str, float] | None) -> str:
    if took is None:
        return "-"
    return f"{first / took['seconds']:.0%}, {(first + fitted) / took['seconds']:.0%}"


def step(name: str, folder: Path, number: int) -> dict[str, Any]:
    """Run a step in its own process."""
    command = [sys.executable, __file__, "--step", name, str(folder), str(number)]
    done = subprocess.run(command, env=_ONE_THREAD, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    if sys.argv[1:2] == ["--step"]:
        name, folder, number = sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
        found: dict[str, Any] = {}
        if name == "fill":
            fill(folder, number)
        elif name == "change":
            change(folder)
        else:
            found = fit(folder) if name == "fit" else export(folder)
        print(json.dumps(found))
        return
    mkdocs = "--no-mkdocs" not in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()] or [1_000]
    head = ["documents", "fit", "first", "again", "changed", "mkdocs", "mkdocs again", "plain"]
    head += ["share of mkdocs, with fit", "share of plain, with fit", "memory, of mkdocs"]
    rows = [measure(number, mkdocs=mkdocs) for number in numbers]
    report("export", [*table(head, rows), "", f"Bar: a share of at most {BAR:.0%}."])


if __name__ == "__main__":
    main()
