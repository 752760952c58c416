"""Build sites with MkDocs: project, plugin, search box, scripts."""
