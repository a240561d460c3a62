"""What pages are built from: boxes, sliders, pictures, downloads."""
