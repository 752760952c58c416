"""Filters are parsed or refused with a message."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.errors import ConfigError
from kbkit.models import DocumentState, DocumentType, Filters


@pytest.mark.parametrize(
    ("conditions", "same"),
    [
        (None, {}),
        ({}, {}),
        ({"tags": None, "after": None, "min_rating": None}, {}),
        ({"tags": [], "source": "", "path": "", "state": ()}, {}),
        ({"tags": "a"}, {"tags": ("a",)}),
        ({"tags": iter(["a", "b"])}, {"tags": ("a", "b")}),
        ({"document_type": "faq"}, {"document_type": (DocumentType.FAQ,)}),
        (
            {"document_type": [DocumentType.FAQ, "manual"]},
            {"document_type": (DocumentType.FAQ, DocumentType.MANUAL)},
        ),
        ({"state": "stale"}, {"state": (DocumentState.STALE,)}),
        ({"min_rating": 3}, {"min_rating": 3.0}),
        ({"after": "2026-01-31"}, {"after": datetime(2026, 1, 31, tzinfo=UTC)}),
        ({"after": date(2026, 1, 31)}, {"after": datetime(2026, 1, 31, tzinfo=UTC)}),
        ({"before": datetime(2026, 1, 31)}, {"before": datetime(2026, 1, 31, tzinfo=UTC)}),
        (
            {"before": "2026-01-31T01:30:00+02:00"},
            {"before": datetime(2026, 1, 30, 23, 30, tzinfo=UTC)},
        ),
    ],
)
def test_conditions_are_parsed(conditions, same):
    read = Filters.of(conditions)
    assert read == Filters(**same)
    assert bool(read) == bool(same)
    assert Filters.of(read) == read
    assert hash(read) == hash(Filters(**same))


INVALID = [
    ({"color": "red"}, "color not known; filter by document_type, tags,"),
    ({1: "x", "tag": "y"}, "1, tag not known"),
    ("tags", "not a mapping"),
    ([("tags", "a")], "not a mapping"),
    (3, "not a mapping"),
    ({"tags": 3}, "give a text or a list of texts"),
    ({"tags": ["a", 3]}, "give a text or a list of texts"),
    ({"tags": {"a": 1}}, "give a text or a list of texts"),
    ({"tags": b"a"}, "give a text or a list of texts"),
    ({"tags": "\udcff"}, "not valid Unicode"),
    ({"document_type": "novel"}, "choose from manual, tutorial"),
    ({"document_type": ["faq", "novel"]}, "choose from manual, tutorial"),
    ({"document_type": "manul"}, "did you mean 'manual'?"),
    ({"state": "lost"}, "choose from current, stale, gone"),
    ({"source": ["a"]}, "give a text"),
    ({"source": "\ud800"}, "not valid Unicode"),
    ({"path": 3}, "give a text"),
    ({"path": "\udcff*"}, "not valid Unicode"),
    ({"after": "tomorrow"}, "write a date as 2026-01-31"),
    ({"after": ""}, "write a date as 2026-01-31"),
    ({"after": 1769817600}, "give a date or a time"),
    ({"before": datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))}, "out of range"),
    ({"before": datetime.max.replace(tzinfo=timezone(timedelta(hours=-9)))}, "out of range"),
    ({"min_rating": "good"}, "from 1 to 5"),
    ({"min_rating": 0}, "from 1 to 5"),
    ({"min_rating": 5.1}, "from 1 to 5"),
    ({"min_rating": float("nan")}, "from 1 to 5"),
    ({"min_rating": True}, "from 1 to 5"),
    ({"min_probability": 1.1}, "from 0 to 1"),
    (Filters(tags=3), "give a text or a list of texts"),
    (Filters(document_type="novel"), "choose from manual, tutorial"),
    (Filters(min_rating=9), "from 1 to 5"),
]


@pytest.mark.parametrize(("conditions", "message"), INVALID)
def test_invalid_conditions_are_refused(conditions, message):
    with pytest.raises(ConfigError, match=r"^filters: ") as caught:
        Filters.of(conditions)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_filters_are_normalized():
    filters = Filters(tags="api", document_type="faq", after=datetime(2026, 1, 31), min_rating=3)
    values = {"tags": ["api"], "document_type": "faq", "after": "2026-01-31", "min_rating": 3}
    assert Filters.of(filters) == Filters.of(values)
    assert Filters.of({"min_rating": np.float64(2.5)}).min_rating == 2.5


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.dates()
    | st.characters(categories=["Cs"]),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=5,
)
names = st.sampled_from([*Filters.__slots__, "other"])


@given(st.dictionaries(names, anything, max_size=3) | anything)
def test_any_value_is_parsed_or_refused(conditions):
    try:
        read = Filters.of(conditions)
    except ConfigError:
        return
    assert Filters.of(read) == read


@pytest.mark.parametrize("page", [0, -1, "1", [0], [1.5], {"a": 1}, True, [2**63]])
def test_invalid_page_is_refused(page):
    with pytest.raises(ConfigError, match="page number, 1 or more"):
        Filters.of({"page": page})


def test_one_or_several_pages():
    assert Filters.of({"page": 3}).page == (3,)
    assert Filters.of({"page": [3, 4]}) == Filters.of(Filters(page=(3, 4)))
