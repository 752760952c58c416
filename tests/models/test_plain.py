"""Suggestions of names."""

from kbkit.models.values import did_you_mean


def test_suggestion_is_the_nearest_name_or_a_short_list():
    names = [f"page-{number}" for number in range(1_500)]
    assert did_you_mean("page-1499x", names) == "did you mean 'page-1499'?"
    message = did_you_mean("zzz", names)
    assert message.startswith("choose from page-0, page-1, ")
    assert message.endswith("page-19 and 1,480 more")
    assert did_you_mean("zzz", names, "list them") == "list them"
    assert did_you_mean("zzz", []) == "leave it out"
