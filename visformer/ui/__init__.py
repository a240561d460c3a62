"""What the pages share. With ``canvas.component``, the only code in the package that imports streamlit."""
