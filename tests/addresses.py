"""What an address holds."""


def fields_of(address):
    """The fields of an address without its version, which stands with every state; a room alone is no state."""
    fields = dict(address)
    version = fields.pop("v", None)
    assert version == ("1" if {*fields} - {"follow"} else None), address
    return fields
