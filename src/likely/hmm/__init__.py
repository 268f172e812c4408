"""Hidden Markov models: forward-backward, Viterbi, Baum-Welch."""
