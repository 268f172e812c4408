"""Model files, checkpoints and atomic writes."""
