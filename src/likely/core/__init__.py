"""The base of the library: protocols, values, the fit loop, blocks, engines, ragged arrays, warnings and errors."""
