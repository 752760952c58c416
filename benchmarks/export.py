"""How long the pages of a site take beside MkDocs itself, and how much memory.

    python benchmarks/export.py [DOCUMENTS ...]

For each number of documents (by default 1,000), in seconds of processor time of one core:

- ``first``: the export of a knowledge base, all of kbkit's part: related passages, pages, index;
- ``again``: the same once more, when nothing has changed;
- ``changed``: the same after one document has changed, which changes its neighbours' pages too and
  the whole index;
- ``mkdocs``: `mkdocs build` of the project, which renders the pages;
- ``share``: ``first`` as a share of ``mkdocs``. The bar is a tenth.

Memory is the peak of each process. Documents are the API of the installed pandas, repeated under
other names where more are asked for. Each step runs in a process of its own. The last column is
what ``zensical build`` makes of the same project, where that is installed (``pip install
zensical``). The table is written to ``build/bench/export.md`` too.
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


def fill(folder: Path, number: int) -> None:
    """Make a knowledge base of so many documents."""
    with kbkit.open(folder / "kb") as workspace:
        source = workspace.create("source")
        source.ingest(PackageSource(name="pandas", limit=min(number, _PANDAS)))
        pages = list(source.iter_documents())
        with (folder / "pages.jsonl").open("w", encoding="utf-8") as file:
            for index in range(number):
                page = pages[index % len(pages)]
                more = f".version{index // len(pages)}" if index >= len(pages) else ""
                values = {"uri": page.uri + more, "title": page.title + more, "text": page.content}
                file.write(json.dumps(values) + "\n")
        workspace.create("docs").ingest(JsonlSource(path=str(folder / "pages.jsonl")))
        workspace.delete("source")


def change(folder: Path) -> None:
    """Change one document of the knowledge base."""
    path = folder / "pages.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    values = json.loads(first)
    values["text"] += "\n\nOne more paragraph, about the weather."
    path.write_text("\n".join([json.dumps(values), *rest]) + "\n", encoding="utf-8")
    with kbkit.open(folder / "kb") as workspace:
        workspace["docs"].refresh()


def export(folder: Path) -> dict[str, Any]:
    """Export it, and say what that took."""
    with kbkit.open(folder / "kb") as workspace:
        kb = workspace["docs"]
        began = time.process_time()
        report = kb.export(folder / "project", build=False)
        seconds = time.process_time() - began
    return {
        "seconds": seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,  # of kB on Linux
        "written": report.written,
        "stages": {name: round(value, 2) for name, value in report.seconds.items()},
    }


def measured(*command: str, folder: Path) -> dict[str, float]:
    """Processor time and peak memory of a command; of nothing where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=folder, env=quiet, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(done.stderr.decode()[-2000:], file=sys.stderr)
        return {}
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": spent, "memory": after.ru_maxrss / 1024}


def measure(number: int) -> list[str]:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step("fill", folder, number)
        first = step("export", folder, number)
        again = step("export", folder, number)
        step("change", folder, number)
        changed = step("export", folder, number)
        built = measured(sys.executable, "-m", "mkdocs", "build", folder=folder / "project")
        other = "not installed"
        if zensical := shutil.which("zensical"):
            shutil.rmtree(folder / "project" / "site", ignore_errors=True)
            took = measured(zensical, "build", folder=folder / "project")
            made = len(list((folder / "project" / "site").rglob("*.html")))
            other = f"{took['seconds']:.1f} s, {made:,} pages" if took else "does not build it"
    share = first["seconds"] / built["seconds"]
    print(
        f"{number:,}: {first['stages']}, {again['written']} files written again, "
        f"{changed['written']} after one change",
        file=sys.stderr,
    )
    seconds = (first["seconds"], again["seconds"], changed["seconds"], built["seconds"])
    cells = [f"{number:,}", *(f"{value:.1f}" for value in seconds), f"{share:.0%}"]
    return [*cells, f"{first['memory']:.0f} MB", f"{built['memory']:.0f} MB", other]


def step(name: str, folder: Path, number: int) -> dict[str, Any]:
    """Run a step in a process of its own."""
    command = [sys.executable, __file__, "--step", name, str(folder), str(number)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
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
            found = export(folder)
        print(json.dumps(found))
        return
    head = ["documents", "first", "again", "changed", "mkdocs", "share", "memory"]
    head += ["memory of mkdocs", "zensical"]
    rows = [measure(int(number)) for number in sys.argv[1:] or ["1000"]]
    report("export", [*table(head, rows), "", f"Bar: a share of at most {BAR:.0%}."])


if __name__ == "__main__":
    main()
