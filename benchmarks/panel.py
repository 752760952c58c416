"""Speed of the search panel in Chromium, in a real JupyterLab, on 20,000 chunks.

From running its cell until the panel can be used; from a keystroke until its results are painted,
for a single key and for the last of ten keys a second. Beside them the least possible: a text box
of ipywidgets whose value Python writes into a label.

Run from the project's root: ``python benchmarks/panel.py [CHUNKS] [WORKSPACE]``. Searches the first
knowledge base of the workspace; without one it makes one of the Python documentation.
"""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path
from statistics import median
from typing import Any

from _corpora import assorted_questions, bench_folder, python_manual, report, table

import kbkit

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser.chrome import guarded, launched
from tests.browser.jupyter import server

ROUNDS = 5
QUERIES = 60
CELLS = (
    "import kbkit\nws = kbkit.open({folder!r})\nkb = ws[{name!r}]",
    "from kbkit.panels import SearchPanel\npanel = SearchPanel(kb)\npanel",
    "import ipywidgets\nbox = ipywidgets.Text(description='Echo')\n"
    "label = ipywidgets.HTML().add_class('echo')\n"
    "box.observe(lambda change: setattr(label, 'value', f'“{change[\"new\"]}”'), 'value')\n"
    "ipywidgets.VBox([box, label])",
)
IDLE = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status == 'idle'"
TIMER = """
window.keyed = 0
window.addEventListener('keydown', event => { window.keyed = event.timeStamp }, true)
const painted = () => new Promise(done => requestAnimationFrame(() => {
    const channel = new MessageChannel()
    channel.port1.onmessage = () => done(performance.now())
    channel.port2.postMessage(null)
}))
window.shows = async (selector, text) => {
    const start = performance.now()
    while (![...document.querySelectorAll(selector)].some(part => part.innerText.includes(text))) {
        if (performance.now() - start > 60000) throw new Error(`never shown: ${text}`)
        await new Promise(done => requestAnimationFrame(done))
    }
    return await painted()
}
undefined  // a function would be called
"""
STATUS = ".kbkit-cards .kbkit-status"


def ready(page: Any) -> float:
    """Return milliseconds from running the panel's cell until it can be used."""
    return float(
        page.evaluate(
            """async selector => {
                const notebook = jupyterapp.shell.currentWidget.content
                notebook.activeCellIndex = 1
                await jupyterapp.commands.execute('notebook:clear-cell-output')
                const start = performance.now()
                jupyterapp.commands.execute('notebook:run-cell')
                const end = await window.shows(selector, 'passages')
                return end - start
            }""",
            STATUS,
        )
    )


def keystrokes(page: Any, label: str, selector: str, queries: list[str], pace: int) -> list[float]:
    """Return milliseconds from the last key of each query until its answer is painted.

    Args:
        page: The browser's page.
        label: Label of the text box.
        selector: Selector of the element that names the answered query.
        queries: Texts to type.
        pace: Milliseconds between keys; 0 waits until all keys but the last are answered.
    """
    box = page.get_by_label(label, exact=True)
    times = []
    for query in queries:
        box.fill("" if pace else query[:-1])
        if not pace:
            begun = f"“{query[:-1].strip()}"
            page.evaluate("([selector, text]) => shows(selector, text)", [selector, begun])
        else:
            box.press_sequentially(query[:-1], delay=pace)
            page.wait_for_timeout(pace)
        page.evaluate(
            "([selector, text]) => { window.done = shows(selector, text) }",
            [selector, f"“{query}”"],
        )
        box.press(query[-1])
        times.append(float(page.evaluate("window.done.then(end => end - window.keyed)")))
        page.wait_for_timeout(100)
    return sorted(times)


def measured(folder: Path, name: str, home: Path, chromium: str) -> list[list[str]]:
    """Return the rows of the table."""
    asked = [query.strip() for query in assorted_questions() if 20 < len(query.strip()) < 75]
    random.Random(5).shuffle(asked)
    cells = (CELLS[0].format(folder=str(folder), name=name), *CELLS[1:])
    with (
        server(home) as jupyter,
        launched(chromium) as chrome,
        guarded(chrome, jupyter.address) as (page, _events),
    ):
        page.goto(jupyter.write(cells)[1])
        page.wait_for_function("window.jupyterapp")
        page.wait_for_function(IDLE)
        page.evaluate(TIMER)
        page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 0")
        page.evaluate("jupyterapp.commands.execute('notebook:run-cell')")
        page.wait_for_function(IDLE)
        first = ready(page)
        again = [ready(page) for _ in range(ROUNDS)]
        page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 2")
        page.evaluate("jupyterapp.commands.execute('notebook:run-cell')")
        page.get_by_label("Echo").wait_for()
        keystrokes(page, "Search", STATUS, asked[:8], 0)  # opens the index
        page.wait_for_timeout(3000)
        parts = [asked[8 + i * QUERIES : 8 + (i + 1) * QUERIES] for i in range(2)]
        times = {
            "a key until its results": keystrokes(page, "Search", STATUS, parts[0], 0),
            "the last of ten keys a second": keystrokes(page, "Search", STATUS, parts[1], 100),
            "the least: text box to label": keystrokes(page, "Echo", ".echo", parts[0], 0),
        }
    rows = [
        ["cell run to panel ready, first (with imports)", f"{first:.0f}", ""],
        ["cell run to panel ready, again", f"{median(again):.0f}", f"{max(again):.0f}"],
    ]
    rows += [
        [what, f"{median(found):.0f}", f"{found[int(len(found) * 0.95)]:.0f}"]
        for what, found in times.items()
    ]
    return rows


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    chromium = shutil.which("chromium")
    if not chromium:
        print("chromium: not there; this benchmark needs it")
        return
    assorted_questions()  # says what is missing
    with bench_folder() as scratch:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else scratch / "kb"
        with kbkit.open(folder) as workspace:
            name = next(iter(workspace), "") or python_manual(workspace, scratch, size).name
            chunks = workspace[name].info().chunks
            workspace[name].search("warm")
        home = scratch / "jupyter"
        home.mkdir()
        rows = measured(folder, name, home, chromium)
    lines = [f"{chunks:,} chunks, milliseconds:", "", *table(["", "p50", "p95 or worst"], rows)]
    report("panel", lines)


if __name__ == "__main__":
    main()
