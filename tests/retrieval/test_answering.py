"""Answers of a model, with citations and failures."""

import pytest
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

import kbkit
from kbkit.errors import LanguageModelError
from kbkit.models.searches import Answer


class Model(CustomLLM):
    """Answers with a fixed text, or fails without one."""

    text: str = ""

    @property
    def metadata(self):
        return LLMMetadata(model_name="oracle")

    def complete(self, prompt, **_):
        if not self.text:
            raise ConnectionError("no route\nto host")
        return CompletionResponse(text=self.text)

    def stream_complete(self, prompt, **_):
        raise NotImplementedError


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("asking")) as workspace:
        kb = workspace.create("drinks")
        for words in ("green tea", "black tea", "mint tea"):
            kb.add(words.title(), f"# {words.title()}\n\nHow to make {words}.")
        yield kb


def test_answer_names_the_passages_it_cites(kb):
    answer = kb.ask("make tea", limit=3, llm=Model(text="Pour [2, 3] water [2] and wait [17]. <b>"))
    assert answer.cited == (2, 3)
    assert answer.model == "oracle"
    html = answer._repr_html_()
    assert "&lt;b&gt;" in html
    assert html.count("<b>") == 2  # the sources that are cited
    assert len(answer.hits) == 3


def test_failing_model_is_one_clear_error(kb):
    with pytest.raises(LanguageModelError, match="oracle: ConnectionError: no route to host"):
        kb.ask("make tea", llm=Model())


def test_model_is_not_asked_without_hits(kb, tmp_path):
    with kbkit.open(tmp_path) as workspace:
        workspace.create("empty")
        answer = workspace.ask("make tea", llm=Model())
    assert isinstance(answer, Answer)
    assert not answer.text
    assert "Nothing was found" in str(answer)


def test_answer_lists_its_passages_and_takes_filters(kb):
    answer = Answer("q", "", kb.search("tea"))
    assert str(answer).count("\n[") == 3
    assert kb.ask("make tea", filters={"tags": ["none"]}).hits.hits == ()
