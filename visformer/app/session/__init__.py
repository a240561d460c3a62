"""One visitor's state: what links, files and the browser bring back."""
