"""Train and evaluate the translator (section 5)."""
