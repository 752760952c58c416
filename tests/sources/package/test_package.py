"""Packages are read from their source, never imported."""

import sys
import textwrap

import pytest

from kbkit.errors import SourceError
from kbkit.models import DocumentType
from kbkit.recipes import PackageSource
from kbkit.sources import SourceContext, open_reader
from kbkit.sources.package import repository
from kbkit.sources.restructured_text import markdown

FILES = {
    "__init__.py": '''
        """A toy.

        See :class:`Engine` and ``run``.
        """
        raise SystemExit("imported!")
        from toykit._impl import Engine, helper
        from toykit import tools
        __all__ = ["Engine", "helper", "tools"]
    ''',
    "_impl.py": '''
        """Private home of public things."""
        class _Base:
            def inherited(self, x: int) -> int:
                """From the private base."""
        class Engine(_Base):
            """Runs things.

            Parameters
            ----------
            speed : int, default 3
                How fast.

            Examples
            --------
            >>> Engine(3).run("a<b>c")
            'done'
            """
            power: int = 1
            """How strong."""
            def __init__(self, speed: int = 3, *, quiet=False) -> None: ...
            def run(self, what: str, /, *args, **options) -> str:
                """Run it. %s

                :param what: the thing
                :returns: how it went
                """
            def short(self):
                """Brief."""
            def undocumented(self): ...
            def _private(self):
                """Not shown."""
            @property
            def heat(self) -> float:
                """How hot it is."""
        def helper(a, b=1):
            """Help.

            Args:
                a: The first.
                b (int): The second.

            Returns:
                Nothing of note.

            Example::

                helper(1)
            """
    '''
    % ("Words about running. " * 30),
    "tools/__init__.py": '"""Tools."""\n'
    'from toykit._impl import Engine\ndef hammer():\n    """Hit <it>."""\n',
    "tools/deep.py": '"""Deep tools."""\ndef saw():\n    """Cut."""\n',
    "other.py": '"""Not in __all__, so not public."""\ndef hidden():\n    """No."""\n',
    "tests/test_it.py": '"""Tests."""\ndef test_it():\n    """No."""\n',
}


def install(folder, name: str, files: dict[str, str], monkeypatch) -> None:
    for file, text in files.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def toykit(tmp_path, monkeypatch):
    install(tmp_path, "toykit", FILES, monkeypatch)


def documents(name: str, **options) -> dict:
    events = open_reader(PackageSource(name=name, **options)).events(SourceContext())
    return {event.document.title: event.document for event in events}


def test_public_objects_are_named_by_their_shortest_path(toykit) -> None:
    tools = ["tools", "tools.deep", "tools.deep.saw", "tools.hammer"]
    names = ["Engine", "Engine.run", "helper", *tools]
    assert sorted(documents("toykit")) == ["toykit", *(f"toykit.{name}" for name in names)]
    assert "toykit" not in sys.modules


def test_document_of_a_class_has_its_methods(toykit) -> None:
    document = documents("toykit")["toykit.Engine"]
    assert document.uri == "python:toykit.Engine"
    assert document.document_type is DocumentType.REFERENCE
    assert document.metadata["file"] == "toykit/_impl.py"
    assert document.metadata["line"] == 6
    assert document.content.startswith(
        "# toykit.Engine {#toykit.Engine}\n\n"
        "```python\nclass toykit.Engine(speed: int = 3, *, quiet=False)\n```\n"
    )
    for part in (
        "**Parameters**\n\n-   `speed` (`int`): How fast.",
        "**Examples**\n\n```pycon\n>>> Engine(3).run(\"a<b>c\")\n'done'\n```",
        "-   `power` (`int`): How strong.",
        "-   `toykit.Engine.run`: Run it.",
        "### toykit.Engine.short {#toykit.Engine.short}",
        "### toykit.Engine.heat {#toykit.Engine.heat}\n\nProperty, `float`, read only.\n\n"
        "How hot it is.",
        "toykit.Engine.inherited(x: int) -> int",
    ):
        assert part in document.content, part
    assert "private(" not in document.content
    assert "undocumented" not in document.content


def test_styles_of_docstrings(toykit) -> None:
    contents = {name: document.content for name, document in documents("toykit").items()}
    for name, part in (
        ("Engine.run", "toykit.Engine.run(what: str, /, *args, **options) -> str"),
        ("Engine.run", "**Parameters**\n\n-   `what` (`str`): the thing"),
        ("helper", "-   `a`: The first.\n-   `b` (`int`): The second."),
        ("helper", "```\nhelper(1)\n```"),
        ("tools.hammer", "Hit &lt;it>."),
    ):
        assert part in contents[f"toykit.{name}"]
    assert "See `Engine` and `run`." in contents["toykit"]


def test_markup_across_lines_is_read() -> None:
    text = (
        "See the :ref:`user\nguide <a-guide>`, `here\n<https://x.example/a?\nb=c#d>`__"
        " and ``one\ntwo`` where :math:`0 < a`.\n\n>>> a = '``'\n>>> b = '``'\n\n"
        "A ``lonely\n\nmark``."
    )
    assert markdown(text) == (
        "See the user guide, [here](https://x.example/a?b=c#d) and `one two` where `0 < a`.\n\n"
        "```pycon\n>>> a = '``'\n>>> b = '``'\n```\n\nA \\`\\`lonely\n\nmark\\`\\`."
    )


def test_one_module_of_a_package(toykit) -> None:
    names = ["", ".Engine", ".Engine.run", ".deep", ".deep.saw", ".hammer"]
    assert sorted(documents("toykit.tools")) == [f"toykit.tools{name}" for name in names]
    assert len(documents("toykit", limit=2)) == 2
    rest = documents("toykit", exclude=("toykit.tools*", "*.run"))
    assert sorted(rest) == ["toykit", "toykit.Engine", "toykit.helper"]


def test_folder_of_the_same_name_in_the_working_directory_is_not_read(
    toykit, tmp_path, monkeypatch
) -> None:
    (tmp_path / "work" / "toykit").mkdir(parents=True)
    (tmp_path / "work" / "toykit" / "__init__.py").write_text('"""Another."""\n')
    monkeypatch.chdir(tmp_path / "work")
    assert "toykit.helper" in documents("toykit")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_package", "pip install no-such-package"),
        ("toykit.nothing", "no module"),
        ("toykit.Engine", "not a package or module"),
    ],
)
def test_missing_package_or_module_is_an_error(toykit, name, message) -> None:
    with pytest.raises(SourceError, match=message):
        documents(name)


@pytest.mark.soak
def test_all_of_pandas_is_read() -> None:
    read = documents("pandas")
    assert len(read) > 1200
    assert {"pandas.DataFrame", "pandas.DataFrame.merge", "pandas.read_csv"} <= set(read)
    assert not any(title.startswith(("pandas.core", "pandas.tests")) for title in read)
    merge = read["pandas.DataFrame.merge"].content
    assert "**Examples**" in merge
    assert "```pycon\n>>> df1 = pd.DataFrame(" in merge
    assert "-   `right` (`DataFrame or named Series`): Object to merge with." in merge


SHAPES = '''
"""Shapes."""
from dataclasses import dataclass, field
from typing import overload
@dataclass(frozen=True)
class Point:
    """A point."""
    x: int
    tags: list[str] = field(default_factory=list)
    """Labels."""
    def norm(self) -> float:
        """Length."""
class Point3(Point):
    """Three."""
    @property
    def depth(self) -> int:
        """How deep."""
    @depth.setter
    def depth(self, value): ...
    @property
    def color(self):
        """Its colour."""
    @overload
    def get(self, key: int) -> int: ...
    @overload
    def get(self, key: str, default: str = ...) -> str: ...
    def get(self, key, default=None):
        """Get it."""
'''


def test_overloads_properties_fields_and_bases(tmp_path, monkeypatch) -> None:
    (tmp_path / "shapekit.py").write_text(SHAPES)
    monkeypatch.syspath_prepend(str(tmp_path))
    read = documents("shapekit")
    point, three = read["shapekit.Point"].content, read["shapekit.Point3"].content
    assert "class shapekit.Point(x: int, tags: list[str] = list())" in point
    assert "-   `tags` (`list[str]`): Labels." in point
    for part in (
        "```python\nshapekit.Point3.get(key: int) -> int\n"
        "shapekit.Point3.get(key: str, default: str = ...) -> str\n```",
        "Property, `int`, can be set.\n\nHow deep.",
        "Property, read only.\n\nIts colour.",
        "## Inherited\n\n-   `Point`: `norm`, `tags`, `x`",
    ):
        assert part in three, part
    assert "default=None" not in three
    assert three.endswith("\n\nSource: `shapekit.py`, line 13\n")


@pytest.mark.parametrize("listing", ["RECORD", "top_level.txt"])
def test_known_repository_of_the_source_is_linked(toykit, tmp_path, listing) -> None:
    info = tmp_path / "toys-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toys\nVersion: 1.2\n"
        "Project-URL: Funding, https://github.com/sponsors/toy\n"
        "Project-URL: Source Code, https://github.com/toys/toykit.git\n"
    )
    (info / listing).write_text("toykit/__init__.py,,\n" if listing == "RECORD" else "toykit\n")
    document = documents("toykit")["toykit.helper"]
    assert document.metadata["repository"] == "https://github.com/toys/toykit"
    assert document.content.endswith(
        "Source: `toykit/_impl.py`, line 36, in [toys 1.2](https://github.com/toys/toykit)\n"
    )


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://github.com/encode/httpx/blob/master/CHANGELOG.md", "encode/httpx"),
        ("https://github.com/sponsors/someone", ""),
        ("https://github.com/only-an-owner", ""),
        ("https://evilgithub.com/a/b", ""),
        ("javascript://github.com/a/b", ""),
        ("https://github.com/a/b)[x](javascript:y", ""),
    ],
)
def test_addresses_of_repositories(url, expected) -> None:
    assert repository(url) == (f"https://github.com/{expected}" if expected else "")


ACCESSORS = {
    "__init__.py": '''
        """Rows and what is in them."""
        __all__ = ["Column", "Row", "sine", "aliased", "Made"]
        from livekit._impl import Column, Row, sine, aliased, Made
        print("imported")
    ''',
    "_impl.py": '''
        class Accessor:
            def __init__(self, target):
                self._target = target
            def __get__(self, instance, owner):
                return self._target
        class _Base:
            def shared(self):
                """Inherited by many."""
        class Words(_Base):
            """Functions of text, for Column and Row. See Column.words.upper."""
            def upper(self, locale="en"):
                """In capitals."""
        class Column(_Base):
            """A column."""
            words = Accessor(Words)
            def silent(self):
                pass
        class Row(_Base):
            """A row."""
            words = Accessor(Words)
        def _made(name):
            def method(self, other, *, fill=None, of=object()):
                pass
            method.__name__, method.__doc__ = name, f"Gives the {name}."
            method.__qualname__ = f"Column.{name}"
            return method
        for _name in ("sum", "mean"):
            setattr(Column, _name, _made(_name))
        Column.silent.__doc__ = "It was given a docstring."
        class _Ufunc:
            """All generated functions."""
            def __init__(self, doc):
                self.__doc__ = doc
            def __call__(self, x):
                pass
        sine = _Ufunc("The sine of a number.")
        sine.__qualname__ = "sine"
        aliased = type("Made", (), {"__doc__": "Made by a call.", "__module__": __name__})
        globals()["Made"] = aliased
    ''',
}


@pytest.fixture
def livekit(tmp_path, monkeypatch):
    install(tmp_path, "livekit", ACCESSORS, monkeypatch)
    return tmp_path / "livekit"


def test_introspection_finds_accessors_and_generated_functions(livekit) -> None:
    before = documents("livekit")
    assert sorted(before) == ["livekit", "livekit.Column", "livekit.Row"]
    after = documents("livekit", introspect=True)
    assert "livekit" not in sys.modules
    # of two names, `Made` is its own; the accessor documents Column.words, though Row.words is
    # shorter
    assert sorted(set(after) - set(before)) == [
        "livekit.Column.words",
        "livekit.Made",
        "livekit.sine",
    ]
    words, column = after["livekit.Column.words"].content, after["livekit.Column"].content
    assert "Accessor: an attribute of `livekit.Column`." in words
    assert "livekit.Column.words.upper(locale='en')" in words
    assert "Gives the sum." in column
    assert "livekit.Column.mean(other, *, fill=None, of=...)" in column  # no address in memory
    assert "It was given a docstring." in column
    assert "The sine of a number." in after["livekit.sine"].content
    assert after["livekit.Column.words"].metadata["file"] == "livekit/_impl.py"
    assert documents("livekit", introspect=True) == after


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        pytest.param("import sys; sys.exit(3)", "SystemExit: 3", marks=pytest.mark.slow),
        ("import os; os._exit(1)", "the process that did it ended"),
        pytest.param(
            "import nothing_like", "No module named 'nothing_like'", marks=pytest.mark.slow
        ),
    ],
)
def test_package_that_fails_to_import_is_an_error(livekit, code, message) -> None:
    (livekit / "_more.py").write_text(code)
    with (livekit / "__init__.py").open("a") as file:
        file.write("\nimport livekit._more\n")
    assert len(documents("livekit")) == 3
    with pytest.raises(SourceError, match=f"^livekit: importing it failed: .*{message}") as error:
        documents("livekit", introspect=True)
    assert "leave `introspect` out" in str(error.value)


@pytest.mark.soak
def test_accessors_of_pandas_have_their_usual_names() -> None:
    read = documents("pandas", introspect=True)
    for name in ("str.contains", "dt.year", "cat.codes"):
        assert f"pandas.Series.{name}" in read
    assert not [name for name in read if name.startswith("pandas.Index.str")]
    assert read["pandas.Timestamp"].content.count("replacement for python datetime") == 1
