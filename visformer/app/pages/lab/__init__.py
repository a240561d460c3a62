"""The page The lab."""
