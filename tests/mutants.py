"""What the tests do not see: small mutants of kbkit, and which of them no test kills.

Each mutant is one change of one expression or statement. It is run against the tests that reach its
line, the nearest first (those that reach the least else), for as long as a minute of them lasts.
Each mutant is drawn by a digest of its name and of the seed, so that a run ends, and that work on
other code, or on the tests, draws no others.

    python tests/mutants.py [--number 40] [--seed 0] [--floor 0.85] [--tests PATH ...] [PACKAGE ...]

A package may be a module, too (``ingest/event_writer.py``). It works in a copy, and writes what it
found to build/mutants.md. Tests run in children of this process, which has imported what takes
long. A change that changes nothing that anybody could see counts as a survivor until it is in
tests/equivalent_mutants.md, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import gc
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
PACKAGES = ("feedback", "ingest", "retrieval", "sources", "stores")
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.md"
SECONDS = 60
"""As much of the tests that reach a mutant is tried, by the time that they take without it."""
_SLOWER = 5
"""Tests that take so many times as long, and half a minute, are taken to go on without end."""
_LEFT_OUT = {".git", ".venv", "node_modules", "__pycache__", ".hypothesis", ".mypy_cache"}
_LATE = (
    "chromadb",
    "llama_index.core",
    "alembic",
    "sqlalchemy",
    "pandas",
    "scipy.sparse",
    "scipy.stats",
    "trafilatura",
    "hypothesis",
    "httpx",
    "onnxruntime",
    "tokenizers",
    "ir_measures",
    "docutils.core",
    "networkx",
    "griffe",
    "fastapi",
    "psycopg",
    "schemathesis.pytest.plugin",
    "xdist.plugin",
    "pytest_cov.plugin",
    "pytest_timeout",
    "anyio.pytest_plugin",
    "_hypothesis_pytestplugin",
)
"""What tests would import, each time, at the most cost."""
_CHECKS = {"strict", "daemon", "stacklevel"}
"""Arguments that nobody could see: they make faults loud, or are about the end of a process."""
_COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_HIDDEN = re.compile(r"assert\b|if TYPE_CHECKING:|_?log(ger)?\.(debug|info)\(")
_COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*"}


@dataclass(frozen=True)
class Mutant:
    """A file in which one piece of code is another."""

    path: Path
    line: int
    within: str
    before: str
    after: str
    text: bytes

    def __str__(self) -> str:
        return f"`{self.path}:{self.line}` {self.change}"

    @property
    def change(self) -> str:
        """What it is, in which function: the same wherever its lines go."""
        return f"{self.within}: `{self.before}` -> `{self.after}`"

    @property
    def name(self) -> str:
        """What it is called in the list of equivalent ones."""
        return f"`{self.path}` {self.change}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of a module, in the order of its lines."""
    source = (ROOT / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    scopes = _scopes(tree)
    for node, after in _changes(tree):
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        before = " ".join(source[first:last].decode().split())
        text = source[:first] + after.encode() + source[last:]
        yield Mutant(path, node.lineno, scopes[id(node)], before, after, text)


def _scopes(tree: ast.Module) -> dict[int, str]:
    """The function or class that each node is in, by the node's identity."""
    found = {id(tree): "module"}
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        for inner in ast.iter_child_nodes(node):
            named = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            outer = found[id(node)]
            found[id(inner)] = (
                inner.name
                if named and outer == "module"
                else f"{outer}.{inner.name}"
                if named
                else outer
            )
            nodes.append(inner)
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What may be written in place of which node."""
    hidden = {id(inner) for node in ast.walk(tree) for inner in _unseen(node)}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            yield node, f"({left} {_COMPARED[type(node.ops[0])]} {right})"
        elif isinstance(node, ast.BoolOp):
            word = " or " if isinstance(node.op, ast.And) else " and "
            yield node, f"({word.join(f'({ast.unparse(value)})' for value in node.values)})"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, f"({ast.unparse(node.operand)})"
        elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            word = _COMPUTED[type(node.op)]
            yield node, f"(({ast.unparse(node.left)}) {word} ({ast.unparse(node.right)}))"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, str(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield node, str(node.value + 1)
        elif isinstance(node, ast.IfExp):
            yield node, f"({ast.unparse(node.body)})"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, "pass"
        elif isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | None):
            yield node, "return None"
        elif isinstance(node, ast.Continue):
            yield node, "break"


def _unseen(node: ast.AST) -> Iterator[ast.AST]:
    """What nobody could see the change of: annotations, messages, what only checkers read."""
    parts: list[ast.AST | None] = []  # each with all that it holds
    if isinstance(node, ast.AnnAssign | ast.arg):
        parts = [node.annotation]
    elif isinstance(node, ast.FunctionDef):
        parts = [node.returns, *node.decorator_list]
    elif isinstance(node, ast.ClassDef):
        parts = [*node.decorator_list, *node.keywords]
    elif isinstance(node, ast.JoinedStr | ast.Raise):
        parts = list(ast.iter_child_nodes(node))
    elif isinstance(node, ast.keyword) and node.arg in _CHECKS:
        parts = [node.value]
    elif isinstance(node, ast.Assert | ast.Expr | ast.If) and _HIDDEN.match(ast.unparse(node)):
        parts = [node]
    for part in parts:
        if part is not None:
            yield from ast.walk(part)


@dataclass(eq=False)  # pytest hashes its plugins
class _Reports:
    """A plugin of pytest that notes how long tests take, and which fail."""

    seconds: Counter[str] = field(default_factory=Counter)
    failed: set[str] = field(default_factory=set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.partition("[")[0]
        self.seconds[test] += report.duration
        if report.failed:
            self.failed.add(test)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


@dataclass
class Tests:
    """The tests that reach each line of each file of a copy, and how long each takes."""

    copy: Path
    lines: dict[Path, dict[int, set[str]]]
    seconds: dict[str, float]
    breadth: Counter[str]
    alone: dict[str, bool] = field(default_factory=dict)
    """Whether a test passes by itself, without any mutant."""

    @classmethod
    def measured(cls, copy: Path, paths: Sequence[str]) -> Tests:
        """Run tests, and see what they reach; those that fail are told, and left out."""
        data = copy.parent / "coverage"
        options = ["--cov=kbkit", "--cov-context=test", "--cov-report=", "--cov-fail-under=0"]
        reports = run(copy, [*options, *paths], 7200, COVERAGE_FILE=str(data))
        if reports is None or not reports.seconds:
            sys.exit(f"the tests do not run:\n{(copy.parent / 'log').read_text()}")
        for test in sorted(reports.failed):
            print("left out, since it fails without mutants:", test, flush=True)
        held = CoverageData(str(data))
        held.read()
        lines = {}
        for name in held.measured_files():
            of_file = {
                line: {context.partition("|")[0].partition("[")[0] for context in contexts}
                - {"", *reports.failed}
                for line, contexts in held.contexts_by_lineno(name).items()
            }
            # what is done on import is of use to all that reach any of the file
            every = set().union(*of_file.values())
            path = Path(name).resolve().relative_to(copy)
            lines[path] = {line: tests or every for line, tests in of_file.items()}
        breadth = Counter(
            test for tests in lines.values() for some in tests.values() for test in some
        )
        return cls(copy, lines, reports.seconds, breadth)

    def near(self, mutant: Mutant) -> list[str]:
        """Those that reach a mutant, the nearest first, as many as there is time for."""
        reaching = self.lines.get(mutant.path, {}).get(mutant.line, set())
        chosen, left = [], float(SECONDS)
        for test in sorted(reaching, key=lambda test: (self.breadth[test], test)):
            if self.seconds[test] <= left:
                chosen.append(test)
                left -= self.seconds[test]
        # those of a file in a row, so that what they share is made once
        files = list(dict.fromkeys(_file(test) for test in chosen))
        return sorted(chosen, key=lambda test: files.index(_file(test)))

    def killer(self, mutant: Mutant) -> str:
        """The first test that fails on a mutant and passes without it; none if it survives."""
        tests = self.near(mutant)
        place = self.copy / mutant.path
        whole = place.read_bytes()
        while tests:
            place.write_bytes(mutant.text)
            try:
                limit = _SLOWER * sum(self.seconds[test] for test in tests) + 30
                reports = run(self.copy, ["-x", *tests], limit)
            finally:
                place.write_bytes(whole)
            if reports is None:
                return "no end"
            failed = next(iter(reports.failed), "")
            if not failed or self._passes_alone(failed):
                return failed
            tests.remove(failed)
        return ""

    def _passes_alone(self, test: str) -> bool:
        if test not in self.seconds:  # a module that cannot be imported
            return True
        if test not in self.alone:
            reports = run(self.copy, [test], _SLOWER * self.seconds[test] + 30)
            self.alone[test] = reports is not None and not reports.failed
        return self.alone[test]


def _file(test: str) -> str:
    return test.partition("::")[0]


def run(copy: Path, arguments: list[str], seconds: float, **environment: str) -> _Reports | None:
    """What a child's pytest says of the copy; nothing where it came to no end in time."""
    place = copy.parent / "reports.json"
    child = os.fork()
    if child == 0:
        try:
            _report(copy, arguments, place, environment)
        finally:
            os._exit(0)
    end = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.killpg(child, 9)
            os.waitpid(child, 0)
            return None
        time.sleep(0.01)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, 9)  # what the tests started
    if not place.exists():
        return _Reports(failed={"the process of the tests"})
    found = json.loads(place.read_bytes())
    place.unlink()
    return _Reports(Counter(found["seconds"]), set(found["failed"]))


def _report(copy: Path, arguments: list[str], place: Path, environment: dict[str, str]) -> None:
    """Run pytest in this process, silently, and write what it says."""
    os.setsid()
    said = os.open(place.with_name("log"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for standard in range(3):
        os.dup2(said, standard)
    os.chdir(copy)
    os.environ.update({"PYTHONPATH": str(copy), **environment})
    sys.path[:] = [str(copy), *(each for each in sys.path if Path(each).resolve() != ROOT)]
    sys.dont_write_bytecode = False  # of tests, which are rewritten before they run
    reports = _Reports()
    options = ["-q", "-p", "no:cacheprovider", "--tb=no", "-m", "not browser and not soak"]
    code = pytest.main([*options, *arguments], [reports])
    if code and not reports.failed:
        reports.failed.add(f"pytest itself: {code}")
    place.write_text(json.dumps({"seconds": reports.seconds, "failed": sorted(reports.failed)}))


def equivalents(known: Sequence[Mutant]) -> set[str]:
    """Names of mutants that do no harm; those that are listed but not there are told."""
    listed = set(re.findall(r"^- (`.*`): [^`]*$", EQUIVALENT.read_text(), re.M))
    for name in sorted(listed - {mutant.name for mutant in known}):
        print("listed as equivalent, but not there:", name, flush=True)
    return listed


def draw(known: Sequence[Mutant], number: int, seed: int) -> list[Mutant]:
    """Some mutants, of each name one; whether it is among them has little to do with the others."""
    named = {one.name: one for one in known}
    return sorted(named.values(), key=lambda one: sha256(f"{seed} {one.name}".encode()).digest())[
        :number
    ]


def _mutants_of(package: str) -> Iterator[Mutant]:
    place = ROOT / "kbkit" / package
    for path in sorted(place.rglob("*.py")) or [place]:
        yield from mutants(path.relative_to(ROOT))


def main() -> None:
    """Draw mutants, try them, and say which survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE")
    parser.add_argument("--number", type=int, default=40, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--floor", type=float, default=0.0, help="share that has to be killed")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="by default all")
    given = parser.parse_args()
    every = {package: list(_mutants_of(package)) for package in (*PACKAGES, *given.packages)}
    harmless = equivalents([one for known in every.values() for one in known])
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    for name in _LATE:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()  # children need not look through all that
    tried: Counter[str] = Counter()
    equivalent: Counter[str] = Counter()
    survivors: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve() / "kbkit"
        shutil.copytree(ROOT, copy, ignore=lambda _, names: _LEFT_OUT.intersection(names))
        # compiled by content: a mutant may be written in the second of what it replaces
        compileall.compile_dir(
            copy / "kbkit", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH
        )
        tests = Tests.measured(copy, given.tests)
        for package in given.packages:
            survivors[package] = []
            for mutant in draw(every[package], given.number, given.seed):
                if mutant.name in harmless:
                    equivalent[package] += 1
                    continue
                killer = tests.killer(mutant)
                tried[package] += 1
                if not killer:
                    here = "" if tests.near(mutant) else " (no test is here)"
                    survivors[package].append(f"{mutant}{here}")
                print(package, "killed" if killer else "SURVIVES", mutant, killer, flush=True)
    shares = {name: 1 - len(found) / (tried[name] or 1) for name, found in survivors.items()}
    rows = [
        f"| {name} | {tried[name]} | {equivalent[name]} | {share:.0%} |"
        for name, share in shares.items()
    ]
    lost = [f"- {each}" for found in survivors.values() for each in found]
    whole = 1 - len(lost) / (tried.total() or 1)
    head = ["| package | mutants | equivalent | killed |", "| --- | ---: | ---: | ---: |", *rows]
    last = f"| all | {tried.total()} | {equivalent.total()} | {whole:.0%} |"
    text = "\n".join([*head, last, "", *lost, ""])
    report = ROOT / "build" / "mutants.md"
    report.parent.mkdir(exist_ok=True)
    report.write_text(f"Seed {given.seed}.\n\n{text}")
    print(text)
    if whole < given.floor:
        sys.exit(f"{whole:.0%} of the mutants were killed, which is less than {given.floor:.0%}")


if __name__ == "__main__":
    main()
