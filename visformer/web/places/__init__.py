"""The places of the whole model that can be zoomed in on, down to the sum behind one cell."""
