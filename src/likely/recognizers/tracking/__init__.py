"""Tracking of a target among false measurements."""
