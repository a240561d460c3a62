"""The one browser component: it draws every head's attention on a canvas, from bytes."""
