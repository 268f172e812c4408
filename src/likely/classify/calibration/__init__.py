"""Calibration of probabilities: temperature, Platt scaling, isotonic regression."""
