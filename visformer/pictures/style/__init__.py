"""How pictures look: colours and fonts, and how tokens and numbers are written."""
