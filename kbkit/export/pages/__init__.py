"""The pages of an exported knowledge base, as Markdown, and the files for programs beside them."""
