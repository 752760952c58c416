"""Pages of HTML -> Markdown, and how faithful that is."""
