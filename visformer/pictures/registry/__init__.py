"""How pages, pictures and their options are declared, and the list of all that are."""
