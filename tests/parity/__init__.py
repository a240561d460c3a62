"""The model against independent implementations, whole tensors."""
