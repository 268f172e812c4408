"""Monitoring of sensors for faults."""
