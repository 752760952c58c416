"""Print the size of kbkit by room, and fail above the budget: ``python tests/size.py``.

A line of code has a token other than a comment or docstring. Strings below constants and fields
count as docstrings.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "kbkit"
BUDGET = {"modules": 338, "code": 59_993, "docstrings": 9_116}
"""Lower these when the package has shrunk."""
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def main() -> int:
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted((*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi"))):
        room, *rest = path.relative_to(PACKAGE).parts
        rooms[room if rest else "(top)"] += measured(path)
    total: Counter[str] = sum(rooms.values(), Counter())
    for room, figures in sorted(rooms.items(), key=lambda each: -each[1]["code"]):
        print(f"{room:18}" + "".join(f"{figures[name]:8,} {name}" for name in BUDGET))
    print(f"{'total':18}" + "".join(f"{total[name]:8,} {name}" for name in BUDGET))
    over = [name for name, most in BUDGET.items() if total[name] > most]
    for name in over:
        print(f"{total[name]:,} {name}: the budget is {BUDGET[name]:,}", file=sys.stderr)
    return bool(over)


def measured(path: Path) -> Counter[str]:
    documented: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for each in node.body:
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    documented.update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    code: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in _NO_CODE and token.type != tokenize.ENCODING:
                code.update(range(token.start[0], token.end[0] + 1))
    return Counter(
        modules=path.suffix == ".py", code=len(code - documented), docstrings=len(documented)
    )


if __name__ == "__main__":
    sys.exit(main())
