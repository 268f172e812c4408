"""Recognizers of speech, tracks and faults."""
