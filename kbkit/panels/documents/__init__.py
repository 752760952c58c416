"""The panel that shows what a knowledge base holds."""
