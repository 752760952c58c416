"""Analysis of text and Markdown: terms, languages, subjects; `kbkit.text.markdown`."""
