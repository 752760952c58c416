"""What chunks say and speak of: names, frames, problems and their resolutions."""
