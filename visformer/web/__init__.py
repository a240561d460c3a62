"""What the browser is given: bytes from Python, and in static/ the scripts and styles that draw them."""
