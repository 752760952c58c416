"""From questions and ratings to figures of how well search does."""
