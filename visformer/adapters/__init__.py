"""Adapters: give models of every family one interface to tokenize, translate and trace."""
