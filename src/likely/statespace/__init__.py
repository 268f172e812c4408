"""State-space models: linear, continuous-time, nonlinear, switching, and particle filters."""
