"""The app: what its pages share, and their interactive views. The only code in the package that imports streamlit."""
