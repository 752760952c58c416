"""Names that documents define or mention."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.annotation.names import MAX_LENGTH, MAX_NAMES, names_of
from kbkit.models import EntityType as T
from tests.annotation.documents import document


def names_in(content, **about):
    return {one.name: one for one in names_of(document(content, **about))}


WSGI = "wsgiref.x.WSGIServer"
CALLOC = "`void *PyObject_Calloc(size_t nelem, size_t elsize)` {#c.PyObject_Calloc}"


@pytest.mark.parametrize(
    ("heading", "name", "kind"),
    [
        ("#### PurePath.parts {#pathlib.PurePath.parts}", "pathlib.PurePath.parts", T.SYMBOL),
        (f"### class {WSGI}(address, handler) {{#{WSGI}}}", WSGI, T.SYMBOL),
        ("### exception socket.timeout {#socket.timeout}", "socket.timeout", T.SYMBOL),
        ("### exception KeyError {#KeyError}", "KeyError", T.ERROR),
        (f"### {CALLOC}", "PyObject_Calloc", T.SYMBOL),
        ("# os — Miscellaneous interfaces {#module-os}", "os", T.SYMBOL),
        ("### --ignore PATTERN, -i PATTERN {#cmdoption-compile-ignore}", "--ignore", T.FLAG),
        ("### PYTHONPATH {#envvar-PYTHONPATH}", "PYTHONPATH", T.VARIABLE),
        ("### ALLOWED_HOSTS {#std-setting-ALLOWED_HOSTS}", "ALLOWED_HOSTS", T.SETTING),
        ("## abstract base class {#term-abstract-base-class}", "abstract base class", T.TERM),
        ("## ModMimeUsePathInfo Directive {#modmimeusepathinfo}", "ModMimeUsePathInfo", T.SETTING),
        ("## Alias Directive {#alias}", "Alias", T.SETTING),
        ('### The "deserialize" method', "deserialize", T.SYMBOL),
        ("# Window Functions", "Window Functions", T.TERM),
        ("## std::vec::Vec::push(value)", "std::vec::Vec::push", T.SYMBOL),
    ],
)
def test_headings_define_names(heading, name, kind):
    defined = names_in(f"{heading}\n\nText.\n")[name]
    assert (defined.type, defined.defines, defined.confirmed) == (kind, True, True)


@pytest.mark.parametrize(
    "heading",
    [
        *("# Introduction", "## Examples", "## How to write tests", "## 2004-07-22 (2.8.15)"),
        *("## What’s new in 3.11", "## Bugfixes", "## See also", "## Additional Notes"),
        *("## FAQ", "## Quick Start", "## INFO"),
    ],
)
def test_common_headings_define_no_names(heading):
    assert names_in(f"{heading}\n\nText without a name.\n") == {}


def test_other_headings_are_candidates():
    (one,) = names_in("# Introduction\n\n## Query planner\n\nText.\n").values()
    assert (one.name, one.confirmed, one.defines) == ("Query planner", False, True)


@pytest.mark.parametrize(
    ("span", "name", "kind"),
    [
        ("`get_running_loop()`", "get_running_loop()", T.SYMBOL),
        ("`open(file, mode='r')`", "open()", T.SYMBOL),
        ("`asyncio.Queue`", "asyncio.Queue", T.SYMBOL),
        ("`--dry-run`", "--dry-run", T.FLAG),
        ("`ValueError`", "ValueError", T.ERROR),
        ("`fields.E180`", "fields.E180", T.ERROR),
        ("`$HOME`", "$HOME", T.VARIABLE),
    ],
)
def test_code_spans_are_names(span, name, kind):
    (one,) = names_in(f"Look at {span} once.\n").values()
    assert (one.name, one.type, one.confirmed, one.defines) == (name, kind, True, False)


@pytest.mark.parametrize("span", ["`(x**y) % z`", "`'text'`", "`None`", "`10 Close 0 0`", "`3.5`"])
def test_expressions_and_values_are_not_names(span):
    assert names_in(f"Look at {span} once.\n") == {}


def test_emphasis_links_and_capitals_are_candidates():
    text = "It reads the **shared cache**, as [query plans](x.html) of the Thunder Lizard."
    names = names_in(text)
    assert set(names) == {"shared cache", "query plans", "Thunder Lizard"}
    assert not any(one.confirmed for one in names.values())


def test_definition_lists_and_glossaries_define_terms():
    text = "-   **shared lock**: Keeps others out.\n\n-   `PRAGMA_X`: A constant.\n"
    names = names_in(text)
    assert (names["shared lock"].confirmed, names["shared lock"].defines) == (False, True)
    assert (names["PRAGMA_X"].confirmed, names["PRAGMA_X"].defines) == (True, True)
    assert names_in(text, title="Glossary")["shared lock"].confirmed


def test_type_of_constants_follows_the_heading():
    text = "# Shell\n\n## {}\n\nSet `MY_VALUE` first.\n"
    kinds = {"Environment variables": T.VARIABLE, "Error codes": T.ERROR, "Settings": T.SETTING}
    for title, kind in kinds.items():
        assert names_in(text.format(title))["MY_VALUE"].type is kind


def test_entries_of_index_pages_are_names():
    names = names_in(
        "# Index\n\n| • [P_ALL (in module os)](http://d.invalid/os.html#os.P_ALL) "
        "• [augmented assignment](http://d.invalid/x.html#a) |\n",
        title="Index – P",
    )
    assert names["os.P_ALL"].type is T.SYMBOL
    assert names["augmented assignment"].type is T.TERM
    assert names["augmented assignment"].confirmed


def test_documents_of_apis_name_endpoints_schemas_and_objects():
    endpoint = document("# GET /pets\n", method="get", path="/pets", operation_id="listPets")
    types = {one.name: one.type for one in names_of(endpoint)}
    assert types.items() >= {("GET /pets", T.ENDPOINT), ("listPets", T.SYMBOL)}
    schema = document("# Pet\n", title="Pet schema", part="schema")
    assert names_of(schema)[0].type is T.SCHEMA
    flask = "flask.Flask"
    package = document(f"# {flask} {{#{flask}}}\n", title=flask, uri=f"python:{flask}")
    assert names_of(package)[0].name == flask


def test_names_of_a_document_are_bounded_in_number_and_length():
    spans = " ".join(f"`name_{n}` `{'x' * 99}{n}`" for n in range(5000))
    text = f"## The end {{#x.the_end}}\n\n{spans}"
    names = names_of(document(text + "\n\n## y.defined() {#y.defined}\n"))
    assert MAX_NAMES < len(names) < len(text) / 100
    assert names[0].name == "y.defined"
    assert max(len(one.name) for one in names) <= MAX_LENGTH


def test_name_of_several_forms_is_given_once():
    names = names_in("`open()` and `open` and **open**\n\n### os.open(path) {#os.open}\n")
    assert set(names) == {"open()", "os.open"}


@given(st.text(alphabet="#*`-_[](){}|:. \nabAB\0\x1e\x85é連", max_size=200))
def test_names_of_any_text_are_bounded_and_printable(text):
    for one in names_of(document(text)):
        assert 0 < len(one.name) <= MAX_LENGTH
        assert one.name.isprintable()
