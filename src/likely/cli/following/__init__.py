"""What the command `follow` does."""
