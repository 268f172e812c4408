"""Evaluation of decisions, probabilities, clusterings, transcripts and distances."""
