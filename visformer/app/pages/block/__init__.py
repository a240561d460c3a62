"""The page Through the block."""
