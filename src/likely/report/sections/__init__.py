"""The parts of the report, in the order in which a reader asks for them."""
