"""What weights, heads and values inside a model do to its predictions. No torch: a model runs through its methods."""
