"""One visitor's state, which links, files and the browser restore."""
