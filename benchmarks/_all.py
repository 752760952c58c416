"""Run every benchmark and write an index of their tables to ``build/bench/index.md``.

    python benchmarks/_all.py [NAME ...]

Each benchmark runs in its own process. If one fails, the index notes it and the others run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from _corpora import TABLES, table

HERE = Path(__file__).parent
ARGUMENTS = {"quality": ("--peers", "--fetch")}
"""Further arguments of a benchmark."""


def run(script: Path) -> list[str]:
    """Run a benchmark and return its line of the index."""
    print(f"\n== {script.name}\n", flush=True)
    began = time.time()
    command = [sys.executable, script, *ARGUMENTS.get(script.stem, ())]
    done = subprocess.run(command, cwd=HERE.parent, check=False)
    written = [path for path in sorted(TABLES.glob("*.md")) if path.stat().st_mtime >= began]
    tables = ", ".join(f"[{path.stem}]({path.name})" for path in written) or "none: see above"
    if done.returncode:
        tables = f"failed with exit code {done.returncode}"
    about = script.read_text(encoding="utf-8").split('"""')[1].partition("\n")[0]
    return [script.stem, tables, f"{(time.time() - began) / 60:.1f}", about]


def main() -> int:
    scripts = sorted(path for path in HERE.glob("[!_]*.py"))
    chosen = [path for path in scripts if path.stem in sys.argv[1:] or not sys.argv[1:]]
    rows = [run(path) for path in chosen]
    minutes = sum(float(row[2]) for row in rows)
    lines = [*table(["benchmark", "table", "minutes", "what it shows"], rows), ""]
    lines.append(f"{minutes:.0f} minutes in all.")
    text = "\n".join(lines) + "\n"
    TABLES.mkdir(parents=True, exist_ok=True)
    (TABLES / "index.md").write_text(text, encoding="utf-8")
    print(f"\n{text}\nThe tables are in {TABLES}")
    return int(any("failed" in row[1] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
