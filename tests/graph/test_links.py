"""Links of prose, without those of navigation."""

import pytest

from kbkit.graph.prose import links_of

TOC = "\n".join(f"- [Part {n}](part{n}.html) {{#toc-{n}}}" for n in range(6))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Use [`open`](a.html), [`close`](b.html) and [`read`](c.html).", ["a", "b", "c"]),
        ("See also:\n\n- [one](a.html)\n- [two](b.html)\n", ["a", "b"]),
        (TOC, []),
        (" • ".join(f"[i{n}](i{n}.html)" for n in range(9)), []),
        ("\n".join(f"| [`k{n}`](k{n}.html): | | [Section](s.html) |" for n in range(3)), []),
        (", ".join(f"[`o{n}`](o{n}.html)" for n in range(9)), [f"o{n}" for n in range(9)]),
        (
            "\n".join(f"- [p{n}](p{n}.html) does what no other does" for n in range(9)),
            [f"p{n}" for n in range(9)],
        ),
        ("| [Name](n.html) | [Type](t.html) |\n| --- | --- |\n| [`a`](a.html) | text |", ["a"]),
        ("| a | b |\n| :-- | --: |\n| [`a`](a.html) | text |", ["a"]),
        ("| [Status:](dict.html#Status) | see [`core`](core.html) |", ["core"]),
        ("[Availability](intro.html): Unix, see [here](a.html).", ["a"]),
        ("It is: [this](a.html): that.", ["a"]),
        ("Text [a](a.html).\n\n© 2026 [Somebody](http://x.org). [License](l.html)", ["a"]),
        ("Copyright 2026 [Somebody](http://x.org)\n\nLast updated in [May](m.html).", []),
        ("The [copyright](c.html) of files", ["c"]),
        ("![picture](p.png) and `[code](c.html)`", []),
        ("", []),
    ],
)
def test_links_of_prose_are_kept_and_boilerplate_is_not(text, kept):
    assert [link[2].removesuffix(".html") for link in links_of(text)] == kept


@pytest.mark.parametrize("text", ["[" * 5_000, "[a](b)\n" * 5_000, "|" * 5_000, "- [a](" * 3_000])
def test_odd_texts_have_no_links(text):
    assert list(links_of(text)) == []
