"""The page Decoding."""
