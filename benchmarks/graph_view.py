"""Frames a second of the graph's picture while it is moved and zoomed, in Chromium.

Beside it Cytoscape.js, if the folder of an ``npm install cytoscape`` is given: the same nodes and
edges at the same places, with and without its settings for speed. Both are moved in turn, several
times, so that other work on the machine affects both alike. Frames wait for the screen: 60 is the
maximum.

    python benchmarks/graph_view.py --cytoscape /tmp/node_modules/cytoscape
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from playwright import sync_api

from kbkit.export.mkdocs.page_head import bundle
from kbkit.graph.drawing import positions
from kbkit.runtime.web_server import serve_folder

ROUNDS = 3
SECONDS = 2.0
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Graph</title>
<link rel="stylesheet" href="graph.css"><style>
body { margin: 0; --kb-graph-page: #fff; --kb-graph-text: #111; --kb-graph-soft: #555;
  --kb-graph-line: #888; --kb-graph-raised: #eee; --kb-graph-accent: #0b5cad; }
#theirs { width: 860px; height: 600px; }
</style><div id="ours"></div><div id="theirs"></div>
<script src="graph.js"></script><script src="cytoscape.js"></script>"""
_START = """data => {
    const source = { details: async () => null };
    window.view = new kbkit.GraphView(document.getElementById("ours"), source);
    view.show(data);
    if (!window.cytoscape) return;
    const elements = [
        ...data.nodes.map(({ id, name, x, y, radius }) =>
            ({ data: { id, name, size: 2 * radius }, position: { x, y } })),
        ...data.edges.map(({ source, target, weight }, number) => ({ data: {
            id: `e${number}`, source: data.nodes[source].id, target: data.nodes[target].id, weight,
        } })),
    ];
    const style = [
        { selector: "node", style: { width: "data(size)", height: "data(size)", label: "data(name)",
            "font-size": 12, "min-zoomed-font-size": 9 } },
        { selector: "edge", style: { width: 1, opacity: "data(weight)",
            "curve-style": "haystack" } },
    ];
    window.make = options => {
        window.cy?.destroy();
        window.cy = cytoscape({ container: document.getElementById("theirs"), elements, style,
            layout: { name: "preset" }, ...options });
        cy.fit();
    };
}"""
_MOVE = """async ([which, seconds]) => {
    const times = [];
    const begun = performance.now();
    let before = begun;
    const { canvas } = view;
    const all = which === "ours" ? canvas.overview() : null;
    const zoom = which === "ours" ? 1 : cy.zoom();
    for (let step = 0; performance.now() - begun < 1000 * seconds; step += 1) {
        const scale = 1.6 + 1.3 * Math.sin(step / 20);
        const [dx, dy] = [300 * Math.sin(step / 15), 200 * Math.cos(step / 11)];
        if (which === "ours") {
            canvas.view.moveTo({ x: all.x + dx, y: all.y + dy, scale: all.scale * scale }, false);
        } else {
            cy.viewport({ zoom: zoom * scale, pan: { x: 430 + dx, y: 300 + dy } });
        }
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const now = performance.now();
        times.push(now - before);
        before = now;
    }
    times.sort((a, b) => a - b);
    return [times.length / seconds, times[Math.floor(0.95 * times.length)]];
}"""


def graph(nodes: int, edges: int) -> dict[str, object]:
    """Make a graph with hubs and groups, as manuals have, and its layout."""
    chance = random.Random(1)
    names = [f"module{number % 40}.name{number}" for number in range(nodes)]
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < edges:
        first = int(nodes * chance.random() ** 2)
        second = (first + 40 * chance.randrange(1, nodes // 40)) % nodes
        if chance.random() < 0.2:
            second = chance.randrange(nodes)
        if first != second:
            pairs.add((min(first, second), max(first, second)))
    weights = {pair: round(chance.uniform(0.1, 1), 2) for pair in sorted(pairs)}
    radii = {name: 4 + 14 * (1 - number / nodes) ** 8 for number, name in enumerate(names)}
    begun = time.process_time()
    places = positions(radii, [(names[a], names[b], weight) for (a, b), weight in weights.items()])
    print(f"layout of {nodes:,} nodes: {time.process_time() - begun:.2f} s of a processor")
    types = ("symbol", "symbol", "term", "setting", "error", "flag")
    return {
        "nodes": [
            {
                "id": name,
                "name": name,
                "type": types[number % 6],
                "x": places[name][0],
                "y": places[name][1],
                "radius": radii[name],
            }
            for number, name in enumerate(names)
        ],
        "edges": [
            {"source": a, "target": b, "name": "contains", "weight": weight}
            for (a, b), weight in weights.items()
        ],
        "total": nodes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cytoscape", type=Path, help="folder of the package")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--nodes", type=int, nargs="+", default=[200, 2_000])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assets = Path(__file__).parents[1] / "kbkit/export/assets"
        shutil.copy(assets / "graph.css", folder)
        (folder / "graph.js").write_text(bundle("graph"), "utf-8")
        (folder / "index.html").write_text(_PAGE, "utf-8")
        sizes = {"ours": (folder / "graph.js").read_bytes()}
        (folder / "cytoscape.js").write_text("")
        ways: dict[str, str] = {"ours": ""}
        if given.cytoscape:
            shutil.copy(given.cytoscape / "dist/cytoscape.min.js", folder / "cytoscape.js")
            sizes["cytoscape.min.js"] = (folder / "cytoscape.js").read_bytes()
            fast = "{ hideEdgesOnViewport: true, textureOnViewport: true, pixelRatio: 1 }"
            ways |= {"cytoscape": "{}", "cytoscape, set for speed": fast}
        for what, held in sizes.items():
            print(f"{what}: {len(held):,} bytes, {len(gzip.compress(held)):,} compressed")
        with serve_folder(folder) as address, sync_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=given.chromium, args=["--disable-gpu"], chromium_sandbox=False
            )
            for nodes in given.nodes:
                page = browser.new_page(viewport={"width": 1300, "height": 1600})
                page.goto(f"{address}/index.html")
                page.evaluate(_START, graph(nodes, 5 * nodes // 2))
                found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
                for _ in range(ROUNDS):
                    for way, options in ways.items():
                        if options:
                            page.evaluate(f"make({options})")
                            page.wait_for_timeout(300)
                        which = "ours" if way == "ours" else "theirs"
                        found[way].append(tuple(page.evaluate(_MOVE, [which, SECONDS])))
                print(f"{nodes:,} nodes, {5 * nodes // 2:,} edges")
                for way, runs in found.items():
                    frames = statistics.median(rate for rate, _ in runs)
                    slow = statistics.median(each for _, each in runs)
                    print(f"  {way}: {frames:.0f} frames a second, 95 % within {slow:.0f} ms")
                page.close()
            browser.close()


if __name__ == "__main__":
    main()
