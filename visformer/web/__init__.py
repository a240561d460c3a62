"""The browser side: Python packs the bytes that are sent; the scripts and styles in static/ draw them."""
