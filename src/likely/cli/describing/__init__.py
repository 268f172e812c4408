"""Descriptions of models for the commands `show` and `card`."""
