"""Train the translator (section 5)."""
