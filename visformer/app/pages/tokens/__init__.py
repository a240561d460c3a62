"""The page Tokens."""
