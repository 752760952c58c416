"""Answers: what the model is given, what it cites, how failures are said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

import kbkit
from kbkit.errors import LanguageModelError
from kbkit.models.answers import Answer


class Model(CustomLLM):
    """Says what it is told to, or fails."""

    says: str = ""
    name: str = "oracle"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.name)

    def complete(self, prompt: str, **_: Any) -> CompletionResponse:
        if not self.says:
            raise ConnectionError("no route\nto host")
        return CompletionResponse(text=self.says)

    def stream_complete(self, prompt: str, **_: Any) -> Any:
        raise NotImplementedError


@pytest.fixture(scope="module")
def kb(tmp_path_factory) -> Iterator[kbkit.KnowledgeBase]:
    with kbkit.open(tmp_path_factory.mktemp("asking")) as workspace:
        kb = workspace.create("drinks")
        for words in ("green tea", "black tea", "mint tea"):
            kb.add(words.title(), f"# {words.title()}\n\nHow to make {words}.")
        yield kb


def test_an_answer_names_the_passages_it_cites(kb):
    answer = kb.ask("make tea", limit=3, llm=Model(says="Pour [2, 3] water [2] and wait [17]. <b>"))
    assert answer.cited == (2, 3)
    assert answer.model == "oracle"
    html = answer._repr_html_()
    assert "&lt;b&gt;" in html
    assert html.count("<b>") == 2  # the sources that are cited
    assert len(answer.hits) == 3


def test_a_failing_model_is_one_clear_error(kb):
    with pytest.raises(LanguageModelError, match="oracle: ConnectionError: no route to host; look"):
        kb.ask("make tea", llm=Model())


def test_where_nothing_is_found_no_model_is_asked(kb, tmp_path):
    with kbkit.open(tmp_path) as workspace:
        workspace.create("empty")
        answer = workspace.ask("make tea", llm=Model())
    assert isinstance(answer, Answer)
    assert not answer.text
    assert "Nothing was found" in str(answer)


def test_several_knowledge_bases_are_asked_together(kb):
    answer = Answer("q", "", kb.search("tea"))
    assert str(answer).count("\n[") == 3
    assert kb.ask("make tea", filters={"tags": ["none"]}).hits.hits == ()
