import asyncio
import subprocess
import sys
from html.parser import HTMLParser

import pytest

import kbkit
from kbkit.models import Hits, Mode
from kbkit.panels import SearchPanel
from kbkit.recipes import KnowledgeBaseConfig
from kbkit.stores import encoders


def text_of(markup):
    class Text(HTMLParser):
        text = ""

        def handle_data(self, data):
            self.text += data

    parser = Text()
    parser.feed(markup)
    return parser.text


def status(panel):
    return text_of(panel._status.value)


def shown(panel):
    return [card for card in panel.cards if card.hit is not None]


def visible(card):
    return card.layout.display != "none"


def press_enter(panel):
    panel.query_box._handle_msg(
        {"content": {"data": {"method": "custom", "content": {"event": "submit"}}}, "buffers": []}
    )


def test_starts_empty_and_says_what_there_is(workspace):
    panel = SearchPanel(workspace)
    assert shown(panel) == []
    assert "2 knowledge bases: 4 documents" in status(panel)
    assert panel.kb_box.label == "All"
    assert "What would you like to know?" in text_of(panel._notice.value)


def test_the_status_line_says_what_was_done_instead(scratch):
    kb = scratch["garden"]
    config = kb.config().model_dump(mode="json")
    config["retrieval"]["query_encoder"] = "fitted"  # and nothing is fitted
    kb.reconfigure(KnowledgeBaseConfig.model_validate(config))
    with scratch._resources.database.write() as connection:
        encoders.remove(connection, kb.id)
    panel = SearchPanel(kb)
    panel.query_box.value = "roses"
    assert status(panel).startswith("1 hit for “roses” in ")
    assert "ms. garden: its model embedded the query, since no query" in status(panel)


def test_typing_finds_cards_in_order(workspace):
    panel = SearchPanel(workspace["manual"])
    panel.query_box.value = "read a csv file"
    assert [card.hit.title for card in shown(panel)] == ["Reading CSV files", "Opening files"]
    assert [card.hit for card in shown(panel)] == list(panel.hits)
    assert panel.query == "read a csv file"
    assert status(panel).startswith("2 hits for “read a csv file” in ")
    assert all(visible(card) for card in shown(panel))
    assert not any(visible(card) for card in panel.cards[2:])
    assert "<mark>CSV</mark>" in panel.cards[0]._body.value


def test_a_workspace_is_searched_whole_or_in_part(workspace):
    panel = SearchPanel(workspace)
    panel.query_box.value = "file"
    assert {hit.kb for hit in panel.hits} == {"manual", "notes"}
    assert "kbkit-kb" in panel.cards[0]._body.value
    panel.kb_box.value = "notes"
    assert {hit.kb for hit in panel.hits} == {"notes"}
    assert "kbkit-kb" not in panel.cards[0]._body.value


def test_one_knowledge_base_has_no_selector(workspace):
    panel = SearchPanel(workspace["notes"])
    assert panel.kb_box is None
    assert status(panel).startswith("notes: 2 documents in ")


def test_the_mode_is_used(workspace):
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


def test_search_returns_the_hits(workspace):
    hits = SearchPanel(workspace).search("bread")
    assert isinstance(hits, Hits)
    assert hits[0].title == "Baking bread"


def test_hits_can_be_observed(workspace):
    panel = SearchPanel(workspace)
    seen = []
    panel.observe(lambda change: seen.append(change["new"].query), "hits")
    panel.query_box.value = "bread"
    panel.query_box.value = "file"
    assert seen == ["bread", "file"]


def test_typing_waits_for_a_pause_and_the_latest_query_wins(workspace):
    async def typing():
        panel = SearchPanel(workspace["manual"], debounce=0.05)
        seen = []
        panel.observe(lambda change: seen.append(change["new"].query), "hits")
        for text in ("r", "read", "read c", "read csv"):
            panel.query_box.value = text
            await asyncio.sleep(0.005)
        assert seen == []
        await asyncio.sleep(0.3)
        return seen

    assert asyncio.run(typing()) == ["read csv"]


def test_enter_does_not_wait(workspace):
    async def typing():
        panel = SearchPanel(workspace["manual"], debounce=60)
        panel.query_box.value = "read csv"
        assert not panel.hits
        press_enter(panel)
        return len(panel.hits)

    assert asyncio.run(typing()) == 2


def test_a_closed_panel_does_not_search(workspace):
    async def leave():
        panel = SearchPanel(workspace["manual"], debounce=0.01)
        panel.query_box.value = "read csv"
        panel.close()
        await asyncio.sleep(0.05)
        return panel

    assert not asyncio.run(leave()).hits


def test_emptying_the_box_clears_the_panel(workspace):
    panel = SearchPanel(workspace)
    panel.search("bread")
    panel.query_box.value = "   "
    assert shown(panel) == []
    assert not panel.hits
    assert panel.error is None


def test_nothing_found_says_so(workspace):
    panel = SearchPanel(workspace["manual"])
    panel.mode_box.value = "lexical"
    panel.search("zebra <b>")
    assert "No hits" in status(panel)
    assert "Nothing found for “zebra <b>”" in text_of(panel._notice.value)


def test_hostile_documents_stay_text(workspace):
    panel = SearchPanel(workspace["notes"])
    panel.search("read a file onerror script")
    markup = panel.cards[0]._body.value
    assert "<script" not in markup
    assert "<img" not in markup
    assert "href" not in markup
    assert len(markup) < 8000


def test_stars_are_stored_and_found_again(scratch):
    panel = SearchPanel(scratch, rater="ann")
    panel.search("Roses and water")
    card = panel.cards[0]
    card.stars.value = 4
    rows = scratch["garden"].ratings()
    assert rows[["target", "score", "query", "rater"]].values.tolist() == [
        [card.hit.chunk.id, 4, "Roses and water", "ann"]
    ]
    assert status(panel) == "Stored: 4 stars, very useful, for “Roses”"

    again = SearchPanel(scratch, rater="ann")
    again.search("roses and  WATER")
    assert again.cards[0].stars.value == 4
    again.search("roses")
    assert again.cards[0].stars.value is None
    assert "rated 4 of 5 for “Roses and water”" in text_of(again.cards[0]._body.value)

    other = SearchPanel(scratch, rater="bob")
    other.search("Roses and water")
    assert other.cards[0].stars.value is None
    assert "rated" not in other.cards[0]._body.value


def test_the_rater_comes_from_the_environment(scratch, monkeypatch):
    monkeypatch.setenv("KBKIT_RATER", "carla")
    panel = SearchPanel(scratch["garden"])
    panel.search("roses")
    panel.cards[0].stars.value = 5
    assert scratch["garden"].ratings()["rater"].tolist() == ["carla"]


def test_a_rating_can_be_changed_and_taken_back(scratch):
    panel = SearchPanel(scratch["garden"])
    panel.search("roses")
    card = panel.cards[0]
    assert card.undo.layout.visibility == "hidden"
    card.stars.value = 2
    card.stars.value = 5
    assert scratch["garden"].ratings()["score"].tolist() == [2, 5]
    assert card.undo.layout.visibility == "visible"
    card.undo.click()
    assert card.stars.value == 2
    card.undo.click()
    assert card.stars.value is None
    assert card.undo.layout.visibility == "hidden"
    assert scratch["garden"].ratings().empty
    assert status(panel) == "Taken back: the rating of “Roses”"


def test_undo_belongs_to_the_result_it_was_given_to(scratch):
    scratch["garden"].add("Tulips", "Tulips sleep as bulbs in winter.")
    panel = SearchPanel(scratch["garden"], limit=1)
    panel.search("roses")
    panel.cards[0].stars.value = 3
    panel.search("tulips")
    assert panel.cards[0].stars.value is None
    assert panel.cards[0].undo.layout.visibility == "hidden"
    assert scratch["garden"].ratings()["score"].tolist() == [3]


def test_a_rating_that_cannot_be_stored_is_not_shown(scratch):
    panel = SearchPanel(scratch)
    panel.search("roses")
    scratch.delete("garden")
    panel.cards[0].stars.value = 5
    assert panel.cards[0].stars.value is None
    assert "garden" in status(panel)
    assert 'role="alert"' in panel._status.value


def test_a_known_error_is_one_line_and_keeps_what_was_found(scratch):
    panel = SearchPanel(scratch["garden"])
    panel.search("roses")
    scratch.delete("garden")
    assert [hit.title for hit in panel.search("water")] == ["Roses"]
    assert isinstance(panel.error, kbkit.KbkitError)
    assert 'role="alert"' in panel._status.value
    assert "Traceback" not in panel._status.value


def test_the_next_search_clears_an_error(scratch):
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


def test_an_unexpected_error_is_one_line_too(scratch, capfd):
    panel = SearchPanel(scratch["garden"])
    (scratch.path / "catalog.db").rename(scratch.path / "elsewhere.db")
    scratch.close()
    panel.search("roses")
    assert panel.error is not None
    assert 'role="alert"' in panel._status.value
    assert "\n" not in text_of(panel._status.value)
    assert capfd.readouterr() == ("", "")


def test_an_empty_workspace_is_no_error_until_asked(tmp_path):
    with kbkit.open(tmp_path) as empty:
        panel = SearchPanel(empty)
        assert panel.error is None
        assert "no knowledge base yet" in status(panel)
        panel.search("x")
        assert isinstance(panel.error, kbkit.KbkitError)


def test_the_selector_keeps_up_with_the_workspace(scratch):
    panel = SearchPanel(scratch)
    scratch.create("kitchen").add("Bread", "Flour and water.")
    panel.search("water")
    assert [name for name, _ in panel.kb_box.options] == ["All", "garden", "kitchen"]
    panel.kb_box.value = "kitchen"
    scratch.delete("kitchen")
    panel.search("water again")
    assert panel.kb_box.label == "All"
    assert [hit.kb for hit in panel.hits] == ["garden"]


def test_refresh_shows_what_is_new(scratch):
    panel = SearchPanel(scratch["garden"])
    panel.search("water")
    assert len(panel.hits) == 1
    scratch["garden"].add("Lilies", "Lilies float on water.")
    panel.refresh()
    assert len(panel.hits) == 2


@pytest.mark.parametrize("query", ["x" * 100_000, "\x00", "'; DROP TABLE chunks; --", "*", '"'])
def test_odd_queries_do_no_harm(workspace, query):
    panel = SearchPanel(workspace)
    panel.query_box.value = query
    assert panel.error is None


def test_limit_is_the_number_of_cards(workspace):
    panel = SearchPanel(workspace, limit=1)
    panel.search("file")
    assert len(panel.cards) == len(panel.hits) == 1


def test_importing_the_package_does_not_import_ipywidgets():
    code = "import sys, kbkit.panels; sys.exit('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_rating_can_be_taken_back_once(scratch):
    garden = scratch["garden"]
    chunk = next(garden.iter_chunks())
    first = garden.rate(chunk.id, 2)
    last = garden.rate(chunk.id, 5)
    garden.unrate(last.id)
    assert list(garden.iter_ratings([chunk.id])) == [first]
    assert list(garden.iter_ratings(["other"])) == []
    with pytest.raises(kbkit.KbkitError, match=f"no rating with id {last.id}"):
        garden.unrate(last.id)
