"""Dynamic time warping: alignments, bands, step patterns, barycenters."""
