"""Scan and convert Markdown.

* `blocks`: the scanner of headings, code, raw HTML, tables and text.
* `structure`: plain text and links, headings with paths and anchors, and page boundaries.
* `sanitizing`: untrusted Markdown, made safe for a page.
* `rendering`: pages as HTML.
* `writing`: escaped text, code, links and formulas as Markdown.

`kbkit.sources.html.fidelity` has its own reader, since it checks the output of `writing`.
"""
