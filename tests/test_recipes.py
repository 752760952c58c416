import pytest

from kbkit.errors import ConfigError, RecipeError
from kbkit.recipes import (
    CrawlSource,
    KnowledgeBaseSpec,
    NameSpec,
    NoAnnotation,
    Recipe,
    RulesAnnotation,
    golden_questions,
    load_questions,
    load_recipe,
)

GOOD = """\
name: docs
sources:
  - type: files
    path: "*.md"
questions: questions.tsv
"""


def write(folder, text, name="recipe.yaml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_recipe_has_its_path_and_questions(tmp_path):
    path = write(tmp_path, GOOD)
    write(tmp_path, "# comment\nHow?\ta.html, b.html\n", "questions.tsv")
    recipe = load_recipe(path)
    assert recipe.path == path
    (question,) = golden_questions(recipe)
    assert question.relevant == ("a.html", "b.html")


@pytest.mark.parametrize(
    ("change", "line", "field", "message"),
    [
        (("name:", "nmae:"), 1, "nmae", "did you mean 'name'"),
        (("    path:", "    pth:"), 4, "sources[0].pth", "did you mean 'path'"),
        (("type: files", "type: fils"), 3, "sources[0].type", "did you mean 'files'"),
        (("name: docs", "name: My Docs"), 1, "name", "cannot name a knowledge base"),
        (('path: "*.md"', "path: 3"), 4, "sources[0].path", "string"),
    ],
)
def test_problems_name_line_and_field(tmp_path, change, line, field, message):
    path = write(tmp_path, GOOD.replace(*change))
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    problem = next(p for p in caught.value.problems if message in p)
    assert problem.startswith(f"{path}:{line}: {field}: ")


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "sources: [{type: craw}]",
            ["1: sources[0].type: 'craw' is unknown; did you mean 'crawl'?"],
        ),
        ("sources: [{path: x}]", ["1: sources[0].type: is missing; give one of crawl, page, "]),
        (
            "sources: [{typ: crawl, url: http://x.org}]",
            [
                "1: sources[0].type: is missing; give one of crawl, page, mirror, files, jsonl, "
                "parquet, openapi, package, plugin; 'typ' is an unknown key"
            ],
        ),
        (
            "sources: [{type: crawl, ulr: http://x.org}]",
            ["1: sources[0].ulr: unknown key; did you mean 'url'?"],
        ),
        ("sorces: [{type: page}]", ["1: sorces: unknown key; did you mean 'sources'?"]),
        ("sources: []", ["1: sources: is empty; give at least 1"]),
        ("# empty", ["2: sources: is missing"]),
        (
            "sources: [{type: crawl, url: x.org}]\nchunking: {strategy: heading}",
            [
                "1: sources[0].url: not a web address; begin it with http:// or https://",
                "2: chunking.strategy: 'heading' is unknown; did you mean 'headings'?",
            ],
        ),
        (
            "sources: [{type: page, url: http://x.org}]\nembedding: {type: onx}\nquestions: [3]",
            [
                "2: embedding.type: 'onx' is unknown; did you mean 'onnx'?",
                "3: questions[0]: 3 is not a mapping; give keys and their values",
            ],
        ),
        (
            "sources: [{type: page, url: http://x.org}]\nannotation: ruls",
            ["2: annotation.type: 'ruls' is unknown; did you mean 'rules'?"],
        ),
        (
            "sources: [{type: page, url: http://x.org}]\nannotation: {type: llm, limits: 2}",
            [
                "2: annotation.llm: is missing",
                "2: annotation.limits: unknown key; did you mean 'limit'?",
            ],
        ),
        (
            "sources: [{type: page, url: http://x.org}]\n"
            "annotation: {names: [{name: ''}, {name: x, type: settin}, 3]}",
            [
                "2: annotation.names[0].name: is empty; give at least 1",
                "2: annotation.names[1].type: 'settin' is unknown; did you mean 'setting'?",
                "2: annotation.names[2]: 3 is not a mapping; give keys and their values",
            ],
        ),
    ],
)
def test_each_problem_is_reported_once_with_a_suggestion(tmp_path, text, messages):
    path = write(tmp_path, f"{text}\nname: docs\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path)
    problems = [problem.removeprefix(f"{path}:") for problem in caught.value.problems]
    starts = [found[: len(want)] for found, want in zip(problems, messages, strict=True)]
    assert starts == messages


def test_wrong_keys_in_python_are_config_errors():
    with pytest.raises(ConfigError, match=r"^CrawlSource: limitt: unknown key; did you mean '"):
        CrawlSource(url="http://x.org", limitt=3)
    with pytest.raises(ConfigError) as caught:
        Recipe(name="A B", sources=[{"type": "crawl", "url": "x.org"}, {"type": "fils"}])
    fields = [line.split(":")[1] for line in str(caught.value).splitlines()]
    assert fields == [" name", " sources[0].url", " sources[1].type"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: is empty; write"),
        ("- a\n- b\n", "1: is not a mapping"),
        ("name: [", r"\d: not YAML: "),
        ("a: &x [*x]\n", "1: anchors and aliases"),
        ("name: docs\nname: more\n", "2: 'name' is repeated here"),
    ],
)
def test_invalid_yaml_is_a_recipe_error(tmp_path, text, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe(write(tmp_path, text))


def test_missing_or_binary_file_is_an_error(tmp_path):
    with pytest.raises(RecipeError, match="No such file"):
        load_recipe(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecipeError, match="UTF-8"):
        load_recipe(tmp_path / "bytes.yaml")


def test_invalid_line_of_questions_is_named(tmp_path):
    path = write(tmp_path, "How?\ta.html\nno tab here\n", "q.tsv")
    with pytest.raises(RecipeError, match=r"q\.tsv:2"):
        load_questions(path)


def test_paths_of_a_recipe_are_relative_to_its_folder(tmp_path):
    text = GOOD + "embedding: {type: onnx, model: m}\nsite: {directory: out}\n"
    config = load_recipe(write(tmp_path, text)).spec
    assert config.embedding.model == str(tmp_path / "m")
    assert config.site.directory == str(tmp_path / "out")


def test_model_vectors_weigh_more_by_default():
    minilm = {"type": "onnx", "preset": "minilm"}
    config = KnowledgeBaseSpec.model_validate({"embedding": minilm})
    assert config.retrieval.dense_weight == 0.6
    assert KnowledgeBaseSpec.model_validate(config.model_dump()) == config
    explicit = {"embedding": minilm, "retrieval": {"dense_weight": 0.4}}
    assert KnowledgeBaseSpec.model_validate(explicit).retrieval.dense_weight == 0.4
    assert KnowledgeBaseSpec().retrieval.dense_weight == 0.35


def test_annotation_has_short_forms(tmp_path):
    def annotation(text):
        spec = load_recipe(write(tmp_path, GOOD + text)).spec
        assert KnowledgeBaseSpec.model_validate(spec.model_dump(mode="json")) == spec
        return spec.annotation

    assert annotation("") == annotation("annotation: rules") == RulesAnnotation()
    assert annotation("annotation: none") == NoAnnotation()
    text = "annotation: {names: [Kafka, {name: Postgres, type: command, aliases: [pg, psql]}]}"
    assert annotation(text) == RulesAnnotation(
        names=(
            NameSpec(name="Kafka"),
            NameSpec(name="Postgres", type="command", aliases=("pg", "psql")),
        )
    )
    spec = annotation("annotation: {type: llm, llm: 'openai:some', names: [Kafka]}")
    assert (spec.type, spec.llm, spec.names[0].name) == ("llm", "openai:some", "Kafka")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"chunking": {"size": True}}, "expected a number, not true"),
        ({"graph": {"co_occurrence": False}}, "expected a number, not false"),
        ({"site": {"entries": 1}}, "must be a valid boolean"),
        ({"site": {"model": "maybe"}}, "must be a valid boolean"),
    ],
)
def test_booleans_and_numbers_are_not_mixed(part, message):
    with pytest.raises(ConfigError, match=message):
        KnowledgeBaseSpec(**part)


@pytest.mark.parametrize("rest", ["", "/" + "a" * 100])
def test_passwords_in_addresses_are_refused_and_not_repeated(rest):
    with pytest.raises(ConfigError, match="contains a user name or password") as refused:
        CrawlSource(url=f"https://me:quicksilver@vats.example.com{rest}")
    assert "quicksilver" not in str(refused.value)
    assert CrawlSource(url="https://vats.example.com/@me?to=a@b").url.endswith("a@b")
