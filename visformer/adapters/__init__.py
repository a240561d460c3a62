"""Adapters: what turns a model of some family into something that tokenizes, translates and traces."""
