"""Maximum-entropy distributions under moment constraints."""
