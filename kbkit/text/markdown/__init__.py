"""Scan and convert Markdown.

* `blocks`: the scanner of headings, code, raw HTML, tables and text.
* `structure`: headings with paths and anchors, and page boundaries.
* `plain_text`: Markdown as plain text, and its links.
* `sanitizing`: untrusted Markdown, made safe for a page.
* `rendering`: pages as HTML.
* `writing`: escaped text, code, links and formulas as Markdown.

`kbkit.sources.html.fidelity` has its own reader, since it checks the output of `writing`.
"""
