"""The panel to judge passages with."""
