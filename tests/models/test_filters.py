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
    ({"tags": 3}, "valid string"),
    ({"tags": ["a", 3]}, "valid string"),
    ({"tags": {"a": 1}}, "valid tuple"),
    ({"tags": b"a"}, "valid string"),
    ({"tags": "\udcff"}, "can't encode"),
    ({"document_type": "novel"}, "'manual', 'tutorial'"),
    ({"document_type": ["faq", "novel"]}, "'manual', 'tutorial'"),
    ({"state": "lost"}, "'current', 'stale' or 'gone'"),
    ({"source": ["a"]}, "valid string"),
    ({"source": "\ud800"}, "can't encode"),
    ({"path": 3}, "valid string"),
    ({"after": "tomorrow"}, "a date such as 2026-01-31"),
    ({"after": ""}, "a date such as 2026-01-31"),
    ({"after": 5}, "a date such as 2026-01-31"),
    ({"after": "2026"}, "a date such as 2026-01-31"),
    ({"before": datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))}, "out of range"),
    ({"before": datetime.max.replace(tzinfo=timezone(timedelta(hours=-9)))}, "out of range"),
    ({"min_rating": "good"}, "valid number"),
    ({"min_rating": 0}, "greater than or equal to 1"),
    ({"min_rating": 5.1}, "less than or equal to 5"),
    ({"min_rating": float("nan")}, "equal to"),
    ({"min_rating": True}, "valid number"),
    ({"min_probability": 1.1}, "less than or equal to 1"),
    (Filters(tags=3), "valid string"),
    (Filters(document_type="novel"), "'manual', 'tutorial'"),
    (Filters(min_rating=9), "less than or equal to 5"),
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
    with pytest.raises(ConfigError, match="filters: page="):
        Filters.of({"page": page})


HUGE = 10**5_000
"""More digits than Python writes."""


@pytest.mark.parametrize("conditions", [{"page": HUGE}, {"tags": [HUGE]}, {"after": HUGE}, [HUGE]])
def test_huge_numbers_are_refused(conditions):
    with pytest.raises(ConfigError, match="too many digits"):
        Filters.of(conditions)


def test_one_or_several_pages():
    assert Filters.of({"page": 3}).page == (3,)
    assert Filters.of({"page": [3, 4]}) == Filters.of(Filters(page=(3, 4)))
