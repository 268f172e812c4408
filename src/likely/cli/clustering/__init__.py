"""What the command `cluster` does."""
