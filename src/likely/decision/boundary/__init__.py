"""Decision boundaries between Gaussians: hyperplanes, conics and quadrics."""
