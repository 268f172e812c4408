"""Linear-Gaussian state-space models: Kalman filter and smoother, EM, structural models."""
