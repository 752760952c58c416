"""Analysis of text and Markdown: terms, languages, subjects and `kbkit.text.markdown`."""
