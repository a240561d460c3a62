"""Building blocks of pages: boxes, sliders, pictures, downloads."""
