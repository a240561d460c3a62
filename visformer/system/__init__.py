"""Settings, limits, files, memory and checksums."""
