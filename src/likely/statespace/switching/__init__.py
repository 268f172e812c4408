"""Switching linear-Gaussian models: interacting multiple models, Rao-Blackwellized particles."""
