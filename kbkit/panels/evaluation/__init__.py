"""The panel that measures two settings of search side by side."""
