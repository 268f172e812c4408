"""Several distributions side by side: stacks and tied members."""
