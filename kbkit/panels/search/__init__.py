"""The panel that searches and rates."""
