"""Features of signals: mel-frequency cepstral coefficients, deltas, histogram equalization."""
