"""Decisions of least expected cost, the reject option, and combined posteriors."""
