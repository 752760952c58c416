"""Scan and convert Markdown.

* `blocks`: the scanner. Which characters are headings, code, raw HTML, tables or text.
* `structure`: headings with their paths and anchors, and where pages begin.
* `plain_text`: Markdown as a person reads it, for snippets and the names of headings.
* `links`: where links lead, and the text that they are read by.
* `disarming`: documents of others made fit to stand on a page.
* `rendering`: pages as HTML.
* `writing`: pieces of Markdown made of text: escaped text, code, quotes, formulas.

`kbkit.sources.html.fidelity` has a reader of its own, since it measures what `writing` writes.
"""
