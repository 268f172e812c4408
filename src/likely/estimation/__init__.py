"""The base of all estimators: input validation, labels, decisions, summaries."""
