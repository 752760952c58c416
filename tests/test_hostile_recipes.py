"""Hostile recipes: bounded errors, and trust for what they demand."""

import os
import sys
from pathlib import Path

import pytest
import yaml

import kbkit
from kbkit.errors import ConfigError, RecipeError, TrustError
from kbkit.recipes import demands, load_questions, load_recipe, parse_recipe
from kbkit.runtime.third_party import open_class
from tests.growth import grows_with

HEAD = "name: x\nsources: [{type: files, path: a}]\n"


class Given:
    """Opened by its import path."""

    def __init__(self, **arguments: str) -> None:
        self.arguments = arguments


def aliases(first: str, each: str, names: str = "bcdefghij") -> str:
    """Return lines that each refer ten times to the line before."""
    text, last = f"a: &a {first}\n", "a"
    for name in names:
        text += f"{name}: &{name} {each % ', '.join(['*' + last] * 10)}\n"
        last = name
    return text


BOMBS = {
    "brackets": ("[" * 20_000, "nest"),
    "more brackets": ("[" * 200_000, "nest"),
    "dashes": ("- " * 20_000 + "x", "not a mapping"),
    "an integer": (HEAD + "x: " + "9" * 5_000, "r.yaml:3: x: unknown key"),
    "hexadecimal": (HEAD + "x: 0x" + "f" * 100_000, "unknown key"),
    "of base 60": (HEAD + "x: 1" + ":59" * 300_000, "unknown key"),
    "a null character": (HEAD + 'description: "a\\0b"', "r.yaml:3: has a null character"),
    "half a character": (HEAD + 'description: "\\ud800"', "invalid Unicode character"),
    "an alias bomb": (aliases("[1, 1]", "[%s]"), "anchors and aliases"),
    "a circle": ("a: &a [*a]", "anchors and aliases"),
    "a tag": (HEAD + "description: !!timestamp x", "tags (tag:yaml.org,2002:timestamp)"),
    "an object": (HEAD + "description: !!python/object:os.system x", "tags ("),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("text", "message"), BOMBS.values(), ids=BOMBS)
def test_hostile_yaml_is_one_clear_error(text, message):
    with pytest.raises(RecipeError) as caught:
        parse_recipe(text, Path("r.yaml"))
    assert message in str(caught.value)
    assert str(caught.value).startswith("r.yaml:")


def test_many_problems_are_limited_in_linear_time():
    def parse(number):
        lines = "".join(f"key_{key}: 1\n" for key in range(number))
        with pytest.raises(RecipeError) as caught:
            parse_recipe(f"name: x\n{lines}{'y' * 900}: 1\n", Path("r.yaml"))
        assert "r.yaml:2: key_0: unknown key" in caught.value.problems[1]
        assert len(caught.value.problems) <= 101
        assert caught.value.problems[-1] == (
            f"r.yaml:1: recipe: has {number - 98:,} more problems; fix those above first"
        )

    grows_with(parse, 2_500)


@pytest.mark.parametrize("kind", ["", "  type: " + "z" * 100_000 + "\n"], ids=["no", "long"])
def test_many_unknown_keys_are_reported_in_linear_time(kind):
    def parse(number):
        lines = "".join(f"  key_{key}: 1\n" for key in range(number))
        with pytest.raises(RecipeError) as caught:
            parse_recipe(f"name: x\nsources:\n- a: 1\n{kind}{lines}", Path("r.yaml"))
        assert len(str(caught.value)) < 20_000

    grows_with(parse, 2_500)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes of a name")
def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path, "a\0b"):
        for load in (load_recipe, load_questions):
            with pytest.raises(RecipeError, match=r"a file (that )?can be read|name a file"):
                load(Path(path))


def write(folder: Path, values: dict) -> Path:
    path = folder / "recipe.yaml"
    recipe = {"name": "x", "sources": [{"type": "files", "path": "a.md"}], **values}
    path.write_text(yaml.safe_dump(recipe))
    return path


DEMANDS = {
    "a folder above": ({"sources": [{"type": "files", "path": "../*.md"}]}, "reads ../*.md"),
    "a folder in a glob": ({"sources": [{"type": "files", "path": "*/../../x"}]}, "reads"),
    "anywhere": ({"sources": [{"type": "jsonl", "path": "/etc/passwd"}]}, "reads /etc/passwd"),
    "a link": ({"sources": [{"type": "files", "path": "link/*.md"}]}, "reads link/*.md"),
    "a mirror": (
        {"sources": [{"type": "mirror", "path": "/srv", "base_url": "https://h/"}]},
        "reads /srv",
    ),
    "an API": ({"sources": [{"type": "openapi", "path": "../api.json"}]}, "reads ../api.json"),
    "questions": ({"questions": "../q.tsv"}, "questions: reads ../q.tsv"),
    "a model": ({"embedding": {"type": "onnx", "model": "/m"}}, "embedding: reads /m"),
    "private addresses": (
        {"sources": [{"type": "page", "url": "http://h/", "allow_private": True}]},
        "sources[0]: fetches from private addresses",
    ),
    "a named address": (
        {"sources": [{"type": "page", "url": "http://h/", "allow_private": ["169.254.1.1"]}]},
        "fetches from 169.254.1.1",
    ),
    "an output folder": ({"site": {"directory": "out"}}, "site.directory: writes to"),
    "code": ({"sources": [{"type": "package", "name": "json", "introspect": True}]}, "imports"),
    "a plugin": ({"sources": [{"type": "plugin", "name": "p"}]}, "runs the plugin p"),
    "an embedder": ({"embedding": {"type": "llama-index", "model": "os:system"}}, "os:system"),
    "a postprocessor": ({"retrieval": {"postprocessors": [{"path": "os:system"}]}}, "os:system"),
    "a language model": ({"expand": {"llm": "os:system"}}, "expand: runs os:system"),
    "an annotator": ({"annotation": {"type": "llm", "llm": "os:system"}}, "runs os:system"),
}


@pytest.mark.parametrize(("values", "demand"), DEMANDS.values(), ids=DEMANDS)
def test_demands_of_a_recipe_need_trust(tmp_path, values, demand):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "link").symlink_to(tmp_path)
    path = write(tmp_path / "r", values)
    with pytest.raises(TrustError, match="trust=True") as caught:
        kbkit.build(path, tmp_path / "kb")
    assert len(caught.value.demands) == 1
    assert demand in caught.value.demands[0]
    with pytest.raises(TrustError):
        kbkit.build(load_recipe(path), tmp_path / "kb")
    assert not (tmp_path / "kb").exists()


def test_keys_must_refer_to_the_environment(tmp_path, monkeypatch):
    model = {"type": "llama-index", "model": "tests.embedding.test_llamaindex:NoSuchClass"}
    literal = {"embedding": {**model, "arguments": {"api_key": "sk-1234567", "api_base": "h"}}}
    message = r"recipe.yaml:\d+: api_key: a key does not belong here"
    with pytest.raises(RecipeError, match=message) as caught:
        load_recipe(write(tmp_path, literal))
    assert "sk-1234567" not in str(caught.value)
    referred = {"embedding": {**model, "arguments": {"api_key": "${THEIRS}", "max_tokens": 5}}}
    recipe = load_recipe(write(tmp_path, referred))
    assert recipe.embedding.arguments == {"api_key": "${THEIRS}", "max_tokens": 5}
    assert "embedding: is given the variable THEIRS of the environment" in demands(recipe)

    def opened() -> Given:
        options = {"kind": "thing", "name": "it", "check": "-"}
        arguments = {"api_key": "${THEIRS}", "other": "${not one}"}
        return open_class(f"{__name__}:Given", arguments, Given, error=ConfigError, **options)

    monkeypatch.setitem(sys.modules, __name__, sys.modules[Given.__module__])
    with pytest.raises(ConfigError, match="it: api_key: the environment has no THEIRS; set it"):
        opened()
    monkeypatch.setenv("THEIRS", "geheimnis")
    assert opened().arguments == {"api_key": "geheimnis", "other": "${not one}"}


@pytest.mark.parametrize(("path", "trust"), [("./*.md", False), ("../r/*.md", True)])
def test_recipe_within_its_folder_or_trusted_is_built(tmp_path, path, trust):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "a.md").write_text("# A\n\nText of a note.\n")
    recipe = write(tmp_path / "r", {"sources": [{"type": "files", "path": path}]})
    assert bool(demands(load_recipe(recipe))) == trust
    report = kbkit.build(recipe, tmp_path / "kb", site=False, trust=trust)
    assert report.info.documents == 1
