"""Small Transformers that learn one task in seconds, while somebody watches."""
