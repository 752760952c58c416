"""Third-party classes that a recipe names by import path.

A recipe is trusted: its classes are imported and run. Keys never appear in messages.
"""

import importlib
import os
import re
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from kbkit.errors import KbkitError

T = TypeVar("T")

SECRET_NAME = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
"""Names of arguments and variables whose values are secret."""

_SECRET_VALUE = re.compile(r"\b(?:sk|pk|hf|gsk|pa)[-_][\w*-]{4,}|(?i:bearer)\s+\S+")
_IN_ADDRESS = re.compile(
    r"(?<=://)[^\s/@]+@|(?<=[?&;])[^\s=&#?]*(?:key|token|secret|password|"
    r"signature)[^\s=&#]*=[^\s&#]+",
    re.IGNORECASE,
)
_PATH = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[:.]([A-Za-z_]\w*)")
_PACKAGE = re.compile(r"llama_index\.((?:embeddings|llms|postprocessor)\.\w+)")
_MIN_SECRET = 6  # shorter values would hide ordinary words


def resolve_model(
    model: str,
    arguments: Mapping[str, Any],
    forms: Mapping[str, tuple[str, str, str]],
    *,
    group: Literal["llms", "embeddings"],
    error: type[KbkitError],
) -> tuple[str, dict[str, Any]]:
    """Return the class of a model, and its arguments.

    The model is a short form (``openai:gpt-4o-mini``) or an import path; `forms` have module, class
    and argument for the model's name.
    """
    head, _, name = model.partition(":")
    if head in forms and name:
        module, kind, argument = forms[head]
        return f"llama_index.{group}.{module}:{kind}", {argument: name, **arguments}
    if match := _PATH.fullmatch(model):
        return f"{match[1]}:{match[2]}", dict(arguments)
    kind = "an embedding" if group == "embeddings" else "a language model"
    raise error(
        f"{model}: not {kind}; write SHORT:MODEL with SHORT one of {', '.join(sorted(forms))}, "
        "or an import path such as package.module:Class"
    )


def open_class(
    path: str,
    arguments: Mapping[str, Any],
    parent: type[T],
    *,
    kind: str,
    name: str,
    error: type[KbkitError],
    check: str,
) -> T:
    arguments = {key: _resolve(name, key, value, error) for key, value in arguments.items()}
    module_name, _, class_name = path.replace(":", ".").rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except Exception as problem:  # importing runs a third party's code
        raise error(
            f"{name}: cannot import {module_name} ({safe_message(problem, arguments)}); "
            f"{how_to_install(path)}"
        ) from problem
    loaded = getattr(module, class_name, None)
    if not (isinstance(loaded, type) and issubclass(loaded, parent)):
        raise error(
            f"{name}: {class_name} in {module_name} is not a {kind}; name a class that derives "
            f"from {parent.__name__}"
        )
    try:
        return loaded(**arguments)
    # "from None", since the traceback of a constructor may show a key
    except Exception as problem:
        raise error(
            f"{name}: cannot be opened ({safe_message(problem, arguments)}); check {check}"
        ) from None


def how_to_install(path: str) -> str:
    """Return the command that installs the package of a class, if it is one of llama-index."""
    match = _PACKAGE.match(path)
    name = match[1].replace(".", "-").replace("_", "-") if match else ""
    return f"pip install llama-index-{name}" if name else "install its package"


def is_installed(path: str) -> bool:
    """Whether the module of a class exists; imports nothing."""
    module_name, _, _ = path.replace(":", ".").rpartition(".")
    name, places = "", None
    for part in module_name.split("."):
        name = f"{name}.{part}".lstrip(".")
        if loaded := sys.modules.get(name):
            places = getattr(loaded, "__path__", ())
            continue
        finders = (finder.find_spec(name, places) for finder in sys.meta_path)
        spec = next(filter(None, finders), None)
        if spec is None:
            return False
        places = spec.submodule_search_locations or ()
    return True


def _resolve(name: str, key: str, value: Any, error: type[KbkitError]) -> Any:
    from kbkit.models.documents import variable

    if not (variable_name := variable(value)):
        return value
    if variable_name not in os.environ:
        raise error(f"{name}: {key}: the environment has no {variable_name}; set it")
    return os.environ[variable_name]


def without_secrets(text: str, arguments: Mapping[str, Any] = MappingProxyType({})) -> str:
    for secret in _secrets(arguments):
        text = text.replace(secret, "***")
    return _IN_ADDRESS.sub("***", _SECRET_VALUE.sub("***", text))


def safe_message(error: Exception, arguments: Mapping[str, Any]) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return without_secrets(text, arguments)[:300]


def _secrets(arguments: Mapping[str, Any]) -> list[str]:
    values = {value for name, value in os.environ.items() if SECRET_NAME.search(name)}
    values |= {str(value) for name, value in arguments.items() if SECRET_NAME.search(name)}
    if arguments:  # an import while an interrupt is logged would change the exit status
        from kbkit.models.documents import variables

        values |= {os.environ.get(name, "") for name in variables(arguments)}
    return sorted((value for value in values if len(value) >= _MIN_SECRET), key=len, reverse=True)
