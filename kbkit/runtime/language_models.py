"""Open and ask llama-index language models, and validate their answers.

Documents and answers are untrusted. Keys never appear in messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kbkit.errors import LanguageModelError
from kbkit.models.values import plain
from kbkit.recipes import LanguageModelSpec
from kbkit.runtime.processes import start
from kbkit.runtime.third_party import open_class, resolve_model, safe_message
from kbkit.text.markdown.structure import plain_text

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

FAILURES = 5
"""Failures in a row that end the work."""
CHARACTERS_PER_TOKEN = 4
"""An estimate for English."""

_MAX_READ = 2_000
"""Maximum characters of an answer's text that are read."""
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>|<!--.*?-->")
_SHORT_FORMS = {
    "anthropic": ("anthropic", "Anthropic", "model"),
    "google": ("google_genai", "GoogleGenAI", "model"),
    "mistral": ("mistralai", "MistralAI", "model"),
    "ollama": ("ollama", "Ollama", "model"),
    "openai": ("openai", "OpenAI", "model"),
    "openai-like": ("openai_like", "OpenAILike", "model"),
}


class AnswerError(Exception):
    """A model gave no usable answer."""

    def __init__(self, reason: str, *, answered: bool = True) -> None:
        super().__init__(reason)
        self.answered = answered


class ModelReply(NamedTuple):
    """Answer of a model; token counts are reported by it, or estimated."""

    text: str
    input_tokens: int
    output_tokens: int


def open_llm(spec: LanguageModelSpec, *, key: str) -> LLM:
    path, arguments = resolve_model(
        spec.llm, spec.arguments, _SHORT_FORMS, group="llms", error=LanguageModelError
    )
    from llama_index.core.llms import LLM

    return open_class(
        path,
        arguments,
        LLM,  # type: ignore[type-abstract]
        kind="llama-index language model",
        name=spec.llm,
        error=LanguageModelError,
        check=f"{key}.arguments and the keys in the environment",
    )


def model_name(llm: LLM) -> str:
    name = llm.metadata.model_name
    # llama-index's names for models without one
    return plain(type(llm).__name__ if name in ("", "unknown") else name)[:200]


def model_key(llm: LLM) -> str:
    kind = type(llm)
    return f"{kind.__module__}:{kind.__qualname__}:{model_name(llm)}"


def ask(
    llm: LLM, instructions: str, *given: str, timeout: float, arguments: Mapping[str, Any]
) -> ModelReply:
    """Ask a model; messages of its errors omit secrets in its arguments."""
    from llama_index.core.llms import ChatMessage, MessageRole

    turns = (MessageRole.USER, MessageRole.ASSISTANT)
    messages = [ChatMessage(role=MessageRole.SYSTEM, content=instructions)]
    messages += [ChatMessage(role=turns[i % 2], content=text) for i, text in enumerate(given)]
    reply = start(partial(llm.chat, messages))
    if not wait([reply], timeout).done:
        raise AnswerError(f"did not answer within {timeout:g} s", answered=False)
    try:
        response = reply.result()
        text = response.message.content or ""
    except Exception as error:  # a model may raise anything
        raise AnswerError(safe_message(error, arguments), answered=False) from None
    length = sum(map(len, (instructions, *given)))
    return ModelReply(
        text,
        _token_count(response, "prompt_tokens", "input_tokens") or length // CHARACTERS_PER_TOKEN,
        _token_count(response, "completion_tokens", "output_tokens")
        or len(text) // CHARACTERS_PER_TOKEN,
    )


def json_object(answer: str, longest: int) -> Mapping[str, Any]:
    """Return the JSON object in an answer, which may be in a fence."""
    if len(answer) > longest:
        raise AnswerError(f"answered with {len(answer):,} characters; at most {longest:,} are read")
    try:
        value, _ = json.JSONDecoder().raw_decode(answer, answer.index("{"))
    except (ValueError, RecursionError):
        raise AnswerError(f"answered without JSON: {plain(answer)[:80]!r}") from None
    return value


def plain_line(text: str, length: int) -> str:
    """Return one line without tags, Markdown, control characters and lone surrogates."""
    valid_text = text[:_MAX_READ].encode("utf-8", "replace").decode()
    line = plain(plain_text(plain(valid_text)))
    while _TAG.search(line):  # removing a tag may form another
        line = plain(_TAG.sub(" ", line))
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0]


def _token_count(response: Any, *names: str) -> int:
    raw = getattr(response, "raw", None)
    usage = raw.get("usage") if isinstance(raw, Mapping) else getattr(raw, "usage", None)
    for holder in (getattr(response, "additional_kwargs", None), usage):
        for name in names:
            value = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
            if isinstance(value, int) and value > 0:
                return value
    return 0
