"""What changes of a model do to its predictions, drawn and said: the views of the page about effects."""
