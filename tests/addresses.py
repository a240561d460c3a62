"""Addresses of the app."""

import json
from urllib.parse import parse_qsl, urlsplit


def fields_of(address):
    """Return the fields of an address without its version, which is there if they describe a state."""
    fields = dict(address)
    version = fields.pop("v", None)
    assert version == ("2" if {*fields} - {"follow"} else None), address  # a room to follow is no state
    return fields


def address_of(app):
    """Return the fields of a session's address, which a browser gives another query where the run says so."""
    for one in app.get("bidi_component"):
        if one.proto.id.endswith("-address"):
            return fields_of(parse_qsl(urlsplit(json.loads(one.proto.bytes)["link"]).query))
    return fields_of({name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()})
