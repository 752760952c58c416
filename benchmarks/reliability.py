"""Reliability of `Hit.probability`: predicted and measured shares of right passages.

The ten best passages of each question, and of questions that no manual answers (``NONSENSE``). The
last columns show how often search says that nothing answers well. Run from the project's root:
``python benchmarks/reliability.py [SET,SET]``. The coefficients in `kbkit.retrieval.searching` are
fitted on the sets before ``python``, which is held out; ``--fit`` fits them again.
"""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
from _corpora import Place, corpora, kept_folder, report, table

from kbkit.recipes import StaticEmbedding

SETS = ("apache", "pandas", "mkdocs", "sqlite", "django", "python")
NONSENSE = (
    "qwzx flubber snorkel",
    "how do I bake sourdough bread at home",
    "capital of mongolia population",
    "the best football player of all time",
    "why is the sky blue",
    "goulash soup with dumplings",
    "cheap flights to lisbon in may",
    "train my dog to sit",
    "symptoms of influenza in children",
    "history of the roman empire",
)
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0)


def measured(name: str) -> tuple[list[tuple[float, float, bool]], float, float]:
    """Return score, probability and rightness of passages, and shares of warnings."""
    rows: list[tuple[float, float, bool]] = []
    warned: dict[bool, list[bool]] = {True: [], False: []}
    for corpus in corpora(kept_folder(name), StaticEmbedding(), [name]):
        asked = [(one.text, one.gains) for one in corpus.questions]
        for text, gains in [*asked, *((text, None) for text in NONSENSE)]:
            hits = corpus.kb.search(text)
            warned[gains is not None].append(any("nothing here" in note for note in hits.notes))
            for hit in hits:
                place = Place(hit.uri, hit.chunk.start, hit.chunk.end)
                right = gains is not None and any(gains([place]))
                rows.append((hit.score, hit.probability or 0.0, right))
    return rows, float(np.mean(warned[True])), float(np.mean(warned[False]))


def curve(rows: list[tuple[float, float, bool]]) -> list[str]:
    """Return predicted and measured share of right passages in each bin."""
    predicted, right = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    cells = []
    for low, high in pairwise(EDGES):
        inside = (predicted >= low) & (predicted < high)
        few = inside.sum() < 10
        cells.append("" if few else f"{predicted[inside].mean():.2f} {right[inside].mean():.2f}")
    return cells


def main() -> None:
    given = [name for name in sys.argv[1:] if not name.startswith("-")]
    names = given[0].split(",") if given else SETS
    lines, everything = [], []
    for name in names:
        rows, wrong, right = measured(name)
        everything += rows
        lines.append([name, *curve(rows), f"{wrong:.0%}", f"{right:.0%}"])
        print(*lines[-1], flush=True)
    lines.append(["all", *curve(everything), "", ""])
    bins = [f"{low:g} to {high:g}" for low, high in pairwise(EDGES)]
    head = ("set", *bins, "warned, questions", "warned, nonsense")
    report(
        "reliability", ["Predicted and measured share of right passages:", "", *table(head, lines)]
    )
    if "--fit" in sys.argv:
        score = np.array([row[0] for row in everything])
        sign = np.where([row[2] for row in everything], 1.0, -1.0)
        slope = intercept = 0.0
        for _ in range(20_000):  # gradient descent on the logistic loss
            pull = sign / (1 + np.exp(sign * (slope * score + intercept)))
            slope += 3 * float((pull * score).mean())
            intercept += 3 * float(pull.mean())
        print(f"slope {slope:.2f}, intercept {intercept:.2f}")


if __name__ == "__main__":
    main()
