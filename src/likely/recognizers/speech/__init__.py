"""Recognition of spoken words."""
