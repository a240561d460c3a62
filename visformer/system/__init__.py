"""Files, memory and checksums."""
