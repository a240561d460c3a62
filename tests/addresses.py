"""Addresses of the app."""


def fields_of(address):
    """Return the fields of an address without its version, which is there if they describe a state."""
    fields = dict(address)
    version = fields.pop("v", None)
    assert version == ("2" if {*fields} - {"follow"} else None), address  # a room to follow is no state
    return fields
