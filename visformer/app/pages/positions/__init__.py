"""The page Positions."""
