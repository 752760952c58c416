"""What a YAML text consists of, within bounds: a stranger's may be made to take for ever."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml  # else in functions: a client of a server knows specs, and has no YAML

_DEEPEST = 50
"""Mappings and lists within one another."""
_TIMES = 20
"""How many times as much as was written aliases may make of it, beside `_FREE` values."""
_FREE = 10_000
_LONGEST_NUMBER = 100
_UNREADABLE = re.compile("[\\0\ud800-\udfff]")
_SMALL = 1_000_000
"""Characters of a wrong text that are read once more, slowly, for the better message."""


def compose(text: str) -> yaml.Node | None:
    """What a YAML text consists of; nothing in it takes long to make values of.

    Raises:
        yaml.YAMLError: It is none, or exceeds a bound: of depth, of what aliases and merges make of
            it, of digits of a number.
    """
    import yaml

    fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:  # a recipe of 200,000 names takes a tenth of the time with libyaml
        _check_depth(text, fast)
        root = yaml.compose(text, Loader=fast)
    except yaml.composer.ComposerError:
        raise
    except yaml.YAMLError:  # whose messages are others
        if len(text) > _SMALL:
            raise
        _check_depth(text, yaml.SafeLoader)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        _check_nodes(root)
    return root


def _check_depth(text: str, loader: Any) -> None:
    """Refuse what is nested too deeply, before anything is made of it by recursion."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise _refused(f"more than {_DEEPEST} lists and mappings in one another", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_nodes(root: yaml.Node) -> None:
    """Refuse aliases that multiply or lead back to themselves, long numbers and null characters."""
    import yaml

    measures: dict[int, tuple[int, int]] = {}  # values and depth, with what aliases stand for
    above: set[int] = set()

    def measure(node: yaml.Node) -> tuple[int, int]:
        if (known := measures.get(id(node))) is not None:
            return known
        if id(node) in above:
            raise _refused("an alias leads back to where it stands", node)
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node)
            size = depth = 1
        else:
            above.add(id(node))
            parts = node.value
            if isinstance(node, yaml.MappingNode):
                parts = [part for pair in parts for part in pair]
            found = [measure(part) for part in parts]
            above.discard(id(node))
            size = 1 + sum(each for each, _ in found)
            depth = 1 + max((each for _, each in found), default=0)
            if depth > _DEEPEST + 1:
                raise _refused(f"more than {_DEEPEST} lists and mappings in one another", node)
        measures[id(node)] = size, depth
        return size, depth

    if measure(root)[0] > len(measures) * _TIMES + _FREE:
        raise _refused("its aliases multiply to more than a recipe can say", root)


def _check_scalar(node: yaml.ScalarNode) -> None:
    if _UNREADABLE.search(node.value):
        raise _refused("a text has a null character, or half of one", node)
    if node.tag.endswith((":int", ":float")) and len(node.value) > _LONGEST_NUMBER:
        raise _refused(f"a number has more than {_LONGEST_NUMBER} characters", node)


def _refused(problem: str, where: Any) -> yaml.MarkedYAMLError:
    import yaml

    return yaml.composer.ComposerError(None, None, problem, where.start_mark)
