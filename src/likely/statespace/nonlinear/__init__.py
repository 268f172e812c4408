"""Nonlinear state-space models: extended, unscented and cubature Kalman filters."""
