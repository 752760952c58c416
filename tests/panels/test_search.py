import asyncio
import subprocess
import sys

import pytest

import kbkit
from kbkit.models import Hits, Mode
from kbkit.panels import SearchPanel
from kbkit.panels.panel import Panel
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores.catalog import ratings
from tests.panels.event_loop import LoopClock


def status(panel):
    return panel.cards.state["status"]


def problem(panel):
    return panel.cards.state["problem"]


def notice(panel):
    return panel.cards.state["notice"]


def shown(panel):
    return panel.cards.state["cards"]


def do(panel, event, place=0, **more):
    """Send an event of a card as the page does."""
    card = shown(panel)[place]["id"] if shown(panel) else "none"
    panel.cards._on_message(panel.cards, {"event": event, "card": card, **more}, [])


def press_enter(panel):
    panel.query_box._handle_msg(
        {"content": {"data": {"method": "custom", "content": {"event": "submit"}}}, "buffers": []}
    )


def observed_queries(panel):
    """Return a list that each search adds its query to."""
    queries = []
    panel.observe(lambda change: queries.append(change["new"].query), "hits")
    return queries


def test_panel_starts_empty_and_counts_documents(workspace):
    panel = SearchPanel(workspace)
    assert shown(panel) == []
    assert "2 knowledge bases: 4 documents" in status(panel)
    assert panel.kb_box.label == "All"
    assert notice(panel)["title"] == "What would you like to know?"
    panel = SearchPanel(workspace["notes"])
    assert panel.kb_box is None
    assert status(panel).startswith("notes: 2 documents in ")


def test_status_line_names_the_fallback_of_the_query_encoder(scratch):
    kb = scratch["garden"]
    config = kb.spec.model_dump(mode="json")
    config["retrieval"]["query_encoder"] = "fitted"
    kb.configure(KnowledgeBaseSpec.model_validate(config))
    with scratch._stores.database.write() as connection:
        ratings.remove_encoder(connection, kb.id)
    panel = SearchPanel(kb)
    panel.query_box.value = "roses"
    assert status(panel).startswith("1 hit for “roses” in ")
    assert "ms. garden: its model embedded the query, since no query" in status(panel)


def test_workspace_or_one_knowledge_base_is_searched(workspace):
    panel = SearchPanel(workspace)
    panel.query_box.value = "file"
    assert {hit.kb for hit in panel.hits} == {"manual", "notes"}
    assert "kb" in [badge["kind"] for badge in shown(panel)[0]["badges"]]
    panel.kb_box.value = "notes"
    assert {hit.kb for hit in panel.hits} == {"notes"}
    assert "kb" not in [badge["kind"] for badge in shown(panel)[0]["badges"]]


def test_mode_is_used(workspace):
    panel = SearchPanel(workspace["manual"])
    panel.query_box.value = "csv"
    panel.mode_box.value = "lexical"
    assert panel.mode is Mode.LEXICAL
    assert [hit.title for hit in panel.hits] == ["Reading CSV files"]
    assert all(hit.parts.dense == 0 for hit in panel.hits)


def test_setting_the_query_searches_at_once(workspace):
    async def in_a_cell():
        panel = SearchPanel(workspace["manual"])
        panel.query = "  open   a file "
        return panel

    panel = asyncio.run(in_a_cell())
    assert panel.query_box.value == "  open   a file "
    assert panel.query == panel.hits.query == "open a file"
    assert panel.hits[0].title == "Opening files"


def test_search_returns_hits_that_can_be_observed(workspace):
    panel = SearchPanel(workspace)
    queries = observed_queries(panel)
    hits = panel.search("bread")
    assert isinstance(hits, Hits)
    assert hits[0].title == "Baking bread"
    panel.query_box.value = "file"
    assert queries == ["bread", "file"]


def test_typing_waits_for_a_pause(workspace):
    async def typing():
        clock, panel = LoopClock(), SearchPanel(workspace["manual"], debounce=0.3)
        queries = observed_queries(panel)
        for text in ("r", "read", "read c", "read csv"):
            panel.query_box.value = text
            await clock.go_on(0.2)
            assert queries == []
        await clock.go_on(0.2)
        assert queries == ["read csv"]
        await clock.go_on(9)
        return queries

    assert asyncio.run(typing()) == ["read csv"]


def test_enter_searches_once_without_waiting(workspace):
    async def typing():
        clock, panel = LoopClock(), SearchPanel(workspace["manual"], debounce=60)
        queries = observed_queries(panel)
        panel.query_box.value = "read csv"
        assert not panel.hits
        press_enter(panel)
        assert len(panel.hits) == 2
        await clock.go_on(99)
        return queries

    assert asyncio.run(typing()) == ["read csv"]


def test_closed_panel_does_not_search(workspace):
    async def leave():
        clock, panel = LoopClock(), SearchPanel(workspace["manual"], debounce=0.3)
        panel.query_box.value = "read csv"
        panel.close()
        await clock.go_on(9)
        return panel

    assert not asyncio.run(leave()).hits


def test_emptying_the_box_clears_the_panel(workspace):
    panel = SearchPanel(workspace)
    panel.search("bread")
    panel.query_box.value = "   "
    assert shown(panel) == []
    assert not panel.hits
    assert panel.error is None


def test_empty_result_is_reported(workspace):
    panel = SearchPanel(workspace["manual"])
    panel.mode_box.value = "lexical"
    panel.search("zebra <b>")
    assert "No hits" in status(panel)
    assert notice(panel)["title"] == "Nothing found for “zebra <b>”"


def test_stars_are_stored_and_shown_again(scratch):
    panel = SearchPanel(scratch, rater="ann")
    panel.search("Roses and water")
    do(panel, "rate", score=4)
    rows = scratch["garden"].ratings.to_frame()
    assert rows[["target", "score", "query", "rater"]].values.tolist() == [
        [panel.hits[0].chunk.id, 4, "Roses and water", "ann"]
    ]
    assert status(panel) == "Saved: 4 stars, very useful, for “Roses”"
    do(panel, "rate", score=4)  # no change
    assert len(scratch["garden"].ratings.to_frame()) == 1

    again = SearchPanel(scratch, rater="ann")
    again.search("roses and  WATER")
    assert shown(again)[0]["stars"] == 4
    again.search("roses")
    assert shown(again)[0]["stars"] == 0
    assert shown(again)[0]["rated"] == "average 4.0 from 1 reader"

    other = SearchPanel(scratch, rater="bob")
    other.search("Roses and water")
    assert shown(other)[0]["stars"] == 0
    assert shown(other)[0]["rated"] == "average 4.0 from 1 reader"


def test_rater_comes_from_the_environment(scratch, monkeypatch):
    monkeypatch.setenv("KBKIT_RATER", "carla")
    panel = SearchPanel(scratch["garden"])
    panel.search("roses")
    do(panel, "rate", score=5)
    assert scratch["garden"].ratings.to_frame()["rater"].tolist() == ["carla"]


def test_rating_can_be_changed_and_undone(scratch):
    panel = SearchPanel(scratch["garden"])
    panel.search("roses")
    assert not shown(panel)[0]["undo"]
    do(panel, "rate", score=2)
    do(panel, "rate", score=5)
    assert scratch["garden"].ratings.to_frame()["score"].tolist() == [2, 5]
    do(panel, "undo")
    assert (shown(panel)[0]["stars"], shown(panel)[0]["undo"]) == (2, True)
    do(panel, "undo")
    assert (shown(panel)[0]["stars"], shown(panel)[0]["undo"]) == (0, False)
    assert scratch["garden"].ratings.to_frame().empty
    assert status(panel) == "Undone: the rating of “Roses”"
    do(panel, "undo")
    assert panel.error is None


def test_deleted_rating_cannot_be_undone(scratch):
    panel = SearchPanel(scratch["garden"])
    panel.search("roses")
    do(panel, "rate", score=2)
    scratch["garden"].ratings.delete(next(iter(scratch["garden"].ratings)).id)
    do(panel, "undo")
    assert "no rating" in problem(panel)
    assert not shown(panel)[0]["undo"]


def test_undo_belongs_to_one_result_and_query(scratch):
    scratch["garden"].add("Tulips", "Tulips sleep as bulbs in winter.")
    panel = SearchPanel(scratch["garden"], limit=1)
    panel.search("roses")
    assert len(shown(panel)) == len(panel.hits) == 1
    do(panel, "rate", score=3)
    panel.search("tulips")
    assert (shown(panel)[0]["stars"], shown(panel)[0]["undo"]) == (0, False)
    panel.search("roses")
    assert (shown(panel)[0]["stars"], shown(panel)[0]["undo"]) == (3, True)


def test_failed_rating_is_not_shown(scratch):
    panel = SearchPanel(scratch)
    panel.search("roses")
    scratch.delete("garden")
    do(panel, "rate", score=5)
    assert shown(panel)[0]["stars"] == 0
    assert "garden" in problem(panel)


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"event": "rate"},
        {"event": "rate", "card": "no/such", "score": 3},
        {"event": "rate", "card": 7, "score": 3},
        {"event": "more", "card": None},
        {"event": "context", "card": [1], "radius": 10**9},
        "text",
    ],
)
def test_malformed_messages_change_nothing(scratch, message):
    panel = SearchPanel(scratch)
    panel.search("roses")
    panel.cards._on_message(panel.cards, message, [])
    assert scratch["garden"].ratings.to_frame().empty
    assert len(shown(panel)) == 1


@pytest.mark.parametrize("score", [0, 6, 2.5, "4"])
def test_only_scores_from_1_to_5_are_stored(scratch, score):
    panel = SearchPanel(scratch)
    panel.search("roses")
    do(panel, "rate", score=score)
    assert panel.error is not None
    assert scratch["garden"].ratings.to_frame().empty


def test_context_shows_neighbouring_passages(scratch):
    parts = ["Soil", "Water", "Light", "Frost", "Harvest"]
    scratch["garden"].add("Figs", "\n\n".join(f"## {part}\n\n{part} for figs." for part in parts))
    panel = SearchPanel(scratch)
    panel.search("light for figs")
    assert panel.hits[0].chunk.heading_path[-1] == "Light"
    do(panel, "context", radius=1)
    context = shown(panel)[0]["context"]
    headings = [">Water<", ">Light<", ">Frost<"]
    for passage, heading in zip(context["passages"], headings, strict=True):
        assert heading in passage["html"]
        assert passage["path"] == ""  # the passage has its heading
    assert [passage["hit"] for passage in context["passages"]] == [False, True, False]
    assert "Frost for figs" in context["passages"][2]["html"]
    assert context["more"]
    do(panel, "context", radius=3)
    context = shown(panel)[0]["context"]
    assert (len(context["passages"]), context["more"]) == (5, False)
    do(panel, "context", radius=0)
    assert shown(panel)[0]["context"] is None


def test_similar_passages_and_back(workspace):
    panel = SearchPanel(workspace)
    panel.search("read a csv file")
    do(panel, "more")
    assert panel.hits.query == "Reading CSV files › Reader"
    assert shown(panel)[0]["title"] == "Opening files"
    assert "1 hit like “Reading CSV files › Reader” in" in status(panel)
    crumb = panel.cards.state["breadcrumb"]
    assert crumb["back"] == "Back to “read a csv file”"
    assert crumb["label"] == "Passages like “Reading CSV files › Reader”"
    do(panel, "more")
    assert panel.cards.state["breadcrumb"]["back"] == "Back"
    assert panel.cards.state["depth"] == 2
    do(panel, "back")
    do(panel, "back")
    assert panel.cards.state["breadcrumb"] is None
    assert panel.hits.query == "read a csv file"
    do(panel, "back")
    assert panel.error is None


def test_ratings_of_similar_passages_have_no_query(scratch):
    scratch["garden"].add("Lilies", "Lilies need sun, water and patience too.")
    panel = SearchPanel(scratch)
    panel.search("roses")
    do(panel, "more")
    do(panel, "rate", score=2)
    assert scratch["garden"].ratings.to_frame()["query"].tolist() == [""]


def test_selection_persists_across_searches(workspace):
    panel = SearchPanel(workspace)
    sizes = []
    panel.observe(lambda change: sizes.append(len(change["new"])), "selection")
    panel.search("read a csv file")
    do(panel, "select", on=True)
    assert panel.selection.query == "read a csv file"
    panel.search("bread")
    do(panel, "select", on=True)
    assert [hit.title for hit in panel.selection] == ["Reading CSV files", "Baking bread"]
    assert panel.selection.query == ""
    assert list(panel.selection.to_frame()["title"]) == ["Reading CSV files", "Baking bread"]
    assert panel.cards.state["selected"] == 2
    do(panel, "select", on=False)
    assert not shown(panel)[0]["selected"]
    do(panel, "clear")
    assert sizes == [1, 2, 1, 0]


def chips(panel):
    return [chip.description for chip in panel.filter_box._chips.children]


def test_filters_offer_existing_values(scratch):
    scratch["garden"].add(
        "Figs",
        "Figs need sun.",
        source="https://a.example/trees/figs.html",
        document_type="manual",
        tags=["tree", "fruit"],
    )
    panel = SearchPanel(scratch)
    panel.search("sun")
    assert len(panel.hits) == 2
    assert panel.filter_box.controls == {}  # until the reader opens them
    panel.filter_box.toggle.value = True
    controls = panel.filter_box.controls
    assert "manual (1)" in [label for label, _ in controls["document_type"].options]
    assert controls["tags"].options == ("fruit", "tree")
    assert controls["path"].options == ("trees/**",)
    controls["tags"].value = "fruit"
    assert controls["tags"].value == ""
    assert [hit.title for hit in panel.hits] == ["Figs"]
    assert "with 1 filter in" in status(panel)
    controls["path"].value = "nowhere/*"
    assert not panel.hits
    assert notice(panel)["text"] == "Try other words, or remove a filter."
    assert chips(panel) == ["tag fruit ✕", "path nowhere/* ✕", "all filters ✕"]
    panel.filter_box._chips.children[2].click()
    assert len(panel.hits) == 2
    assert controls["path"].value == ""
    controls["after"].value = dict(controls["after"].options)["Past week"]
    assert len(panel.hits) == 2
    assert controls["after"].label == "Past week"
    controls["after"].value = dict(controls["after"].options)["Any time"]
    controls["min_rating"].value = 2.0
    controls["min_rating"].value = dict(controls["min_rating"].options)["Any"]
    assert panel.filters == kbkit.Filters()


def test_empty_filters_have_a_label_or_placeholder(workspace):
    panel = SearchPanel(workspace)
    panel.filter_box.toggle.value = True
    for box in panel.filter_box.controls.values():
        assert getattr(box, "label", "") or box.placeholder, box.description


def test_frames_and_subjects_are_filters_and_badges(scratch):
    scratch["garden"].add(
        "Pruning shears",
        "# Pruning shears\n\n1. Open `shears.lock()`.\n2. Cut the roses.\n3. Stop.\n",
    )
    panel = SearchPanel(scratch)
    panel.search("roses")
    assert len(panel.hits) == 2
    badges = {badge["text"]: badge["kind"] for card in shown(panel) for badge in card["badges"]}
    assert badges["procedure"] == "frame"
    assert "entity" in badges.values()
    panel.filter_box.toggle.value = True
    controls = panel.filter_box.controls
    controls["frame"].value = dict(controls["frame"].options)["procedure (1)"]
    assert [hit.title for hit in panel.hits] == ["Pruning shears"]
    assert "Pruning shears" in controls["subject"].options
    controls["subject"].value = "pruning shears"
    assert panel.filters.subject == ("pruning shears",)
    assert len(panel.hits) == 1
    assert chips(panel)[:2] == ["says a procedure ✕", "about pruning shears ✕"]
    panel.filter_box._chips.children[2].click()
    assert panel.filters == kbkit.Filters()
    panel.filters = {"entity": "pruning shears"}
    assert chips(panel) == ["names pruning shears ✕"]


def test_chips_clicked_before_the_panel_answers_remove_their_filters(scratch):
    panel = SearchPanel(scratch)
    panel.filters = {"tags": ["fruit"], "document_type": "manual", "state": "current"}
    kind, tag, state, everything = panel.filter_box._chips.children
    tag.click()
    assert panel.filter_box._chips.children == (kind, state, everything)  # the same buttons
    kind.click()
    tag.click()  # again
    assert panel.filters == kbkit.Filters(state=("current",))
    assert panel.filter_box._chips.children == (state,)


def test_filters_can_be_set_from_python(scratch):
    panel = SearchPanel(scratch)
    panel.search("sun")
    panel.filters = {"document_type": ["faq", "manual"], "before": "2020-01-01"}
    assert not panel.hits
    panel.filter_box.toggle.value = True
    assert panel.filter_box.controls["document_type"].label == "faq or manual"
    with pytest.raises(kbkit.KbkitError, match="colour not known"):
        panel.filters = {"colour": "red"}
    panel.filters = None
    assert len(panel.hits) == 1


def test_panels_of_one_workspace_stay_in_step(scratch):
    one, two = SearchPanel(scratch, rater="ann"), SearchPanel(scratch["garden"], rater="ann")
    one.search("roses")
    two.search("roses")
    do(one, "rate", score=4)
    assert shown(two)[0]["stars"] == 4
    scratch.create("kitchen").add("Roses", "Roses taste well in jam.")
    Panel(scratch.path, "test").publish("documents")
    assert {hit.kb for hit in one.hits} == {"garden", "kitchen"}
    assert {hit.kb for hit in two.hits} == {"garden"}
    scratch["garden"].add("Rose water", "Roses in water.")
    two.refresh()
    assert len(two.hits) == 2


def test_change_of_another_thread_is_shown_in_the_event_loop(scratch):
    async def watch():
        panel = SearchPanel(scratch)
        panel.search("roses")
        scratch["garden"].add("Rose water", "Roses in water.")
        await asyncio.to_thread(Panel(scratch.path, "test").publish, "documents")
        await asyncio.sleep(0.01)
        return len(panel.hits)

    assert asyncio.run(watch()) == 2


def test_look_shows_changes_of_another_process(scratch):
    panel = SearchPanel(scratch, rater="ann")
    panel.search("roses")
    serial = panel.cards.state["serial"]
    with kbkit.open(scratch.path) as other:
        other["garden"].rate(panel.hits[0].chunk.id, 3, query="roses", rater="ann")
        do(panel, "look")
        assert shown(panel)[0]["stars"] == 3
        other["garden"].add("Rose water", "Roses in water.")
        do(panel, "look")
    assert len(panel.hits) == 2
    assert panel.cards.state["serial"] == serial  # the page does not scroll


def test_known_error_is_one_line_and_keeps_the_hits(scratch):
    panel = SearchPanel(scratch["garden"])
    panel.search("roses")
    scratch.delete("garden")
    assert [hit.title for hit in panel.search("water")] == ["Roses"]
    assert isinstance(panel.error, kbkit.KbkitError)
    assert "deleted" in problem(panel)
    assert "Traceback" not in problem(panel)


def test_next_search_clears_an_error(scratch):
    empty = scratch.create("empty")
    panel = SearchPanel(scratch)
    panel.query_box.value = "roses"
    scratch.delete("garden")
    scratch.delete(empty.name)
    panel.query_box.value = "water"
    assert panel.error is not None
    scratch.create("garden").add("Roses", "Roses need sun.")
    panel.query_box.value = "roses"
    assert panel.error is None
    assert "1 hit for" in status(panel)


def test_unexpected_error_is_one_line(scratch, capfd):
    panel = SearchPanel(scratch["garden"])
    (scratch.path / "catalog.db").rename(scratch.path / "elsewhere.db")
    scratch.close()
    panel.search("roses")
    assert panel.error is not None
    assert problem(panel)
    assert "\n" not in problem(panel)
    assert capfd.readouterr() == ("", "")


def test_empty_workspace_is_an_error_only_on_search(tmp_path):
    with kbkit.open(tmp_path) as empty:
        panel = SearchPanel(empty)
        assert panel.error is None
        assert "no knowledge base yet" in status(panel)
        panel.search("x")
        assert isinstance(panel.error, kbkit.KbkitError)


def test_selector_follows_the_workspace(scratch):
    panel = SearchPanel(scratch)
    scratch.create("kitchen").add("Bread", "Flour and water.")
    panel.search("water")
    assert [name for name, _ in panel.kb_box.options] == ["All", "garden", "kitchen"]
    panel.kb_box.value = "kitchen"
    scratch.delete("kitchen")
    panel.search("water again")
    assert panel.kb_box.label == "All"
    assert [hit.kb for hit in panel.hits] == ["garden"]


@pytest.mark.parametrize("query", ["x" * 100_000, "\x00", "'; DROP TABLE chunks; --", "*", '"'])
def test_odd_queries_give_no_error(workspace, query):
    panel = SearchPanel(workspace)
    panel.query_box.value = query
    assert panel.error is None


def test_import_of_panels_does_not_import_ipywidgets():
    code = "import sys, kbkit.panels; sys.exit('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("package", "panel"),
    [("ipywidgets", "SearchPanel"), ("anywidget", "SearchPanel"), ("ipywidgets", "Dashboard")],
)
def test_missing_package_names_the_extra(package, panel):
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from kbkit.errors import MissingExtraError\n"
        f"try:\n    from kbkit.panels import {panel}\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == (f'{panel} needs anywidget: pip install "kbkit[panels]"\n')
