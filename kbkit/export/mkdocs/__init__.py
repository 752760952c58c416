"""What MkDocs is told and given: project, plugin, search box, scripts."""
