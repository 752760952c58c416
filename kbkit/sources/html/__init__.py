"""Convert HTML pages to Markdown, and measure the fidelity."""
