"""Training the translator and measuring it (section 5)."""
