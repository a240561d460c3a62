"""You are here: a small drawing of the model in use, with the part marked that the page shows."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from visformer.app.session import address, boxes, run, selection, url_state
from visformer.app.session.page import current_page, current_view
from visformer.app.widgets import component, controls
from visformer.errors import N_, VisformerError
from visformer.model.positions import POSITIONS
from visformer.pictures.block import KINDS
from visformer.pictures.registry.picture import Page, View, pages
from visformer.pictures.registry.setting import Setting, Source
from visformer.trace.stacks import STACKS, short_name
from visformer.web.places import Zoom
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from visformer.trace.blocks import Blocks

_WORDS = {
    "alone": N_("Model"),
    "about": N_("The model; you are here: {place}"),
    "model": N_("The whole model"),
    "tokens": N_("Tokens"),
    "embedding": N_("Embedding"),
    "position": N_("Position"),
    "masks": N_("Masked attention"),
    "output": N_("Next token"),
    "encoder": N_("Encoder"),
    "decoder": N_("Decoder"),
    "self_attn": N_("Self-attention"),
    "cross_attn": N_("Cross-attention"),
    "ffn": N_("Feed-forward"),
    "layer": N_("Layer {layer}"),
}
_PLACE = {"stack", "layer", "head", "query", "key", "heads"}


def send(key: str) -> None:
    """Send the drawing to the side bar; ``key``: of the sender, since a fragment cannot write there itself."""
    component.locator_picture(_message(), key=key)


def _message() -> dict[str, Any] | None:
    """Return the message; None: the architecture is not known, and nothing is drawn rather than something false."""
    _, blocks, page = boxes.gettext(), _blocks(), pages()[current_page()]
    if blocks is None:
        return None
    stacks = {name: stack for name, stack in blocks.to_json().items() if name in ("encoder", "decoder") and stack}
    if any(stack["norm"] == "unknown" or not stack["n_layers"] for stack in stacks.values()):
        return None
    position = POSITIONS.get(blocks.position)
    return {
        "stacks": stacks,
        "adds": position is not None and position.adds,
        "logits": blocks.logits,
        "here": {"where": _part_of_model(page), **_place(page, [*stacks])},
        "links": _links([*stacks]),
        "words": {name: _(text) for name, text in _WORDS.items()},
        "lang": boxes.language(),
    }


def _blocks() -> "Blocks | None":
    trace = run.current().trace
    if trace is not None:
        return trace.blocks
    with suppress(VisformerError):  # the page shows the error
        return controls.bench().blocks
    return None


def _chosen() -> Selection:
    """Return the selection, within the model as far as it is known; the first head, where only a Trace can tell it."""
    trace, chosen = run.current().trace, selection.chosen()
    if trace is not None and any(stack.in_trace(trace) for stack in STACKS):
        return chosen.within(trace)
    return chosen if chosen.stack else Selection()


def _part_of_model(page: Page) -> str | None:
    """Return the part of the model that the page's view shows."""
    view = current_view()
    return (view and view.where) or page.where


def _place(page: Page, stacks: list[str]) -> Mapping[str, Any]:
    """Return which stack, sublayer and layer, from 0, the page shows; layer None: all of them.

    The whole model, zoomed in, shows what the page of that place does.
    """
    choices = run.current().choices
    if zoomed := choices.get(url_state.ZOOM):
        zoom = Zoom.read(zoomed)
        where = "layer" if zoom.kind is None else "attention"
        return {"where": where, "stack": zoom.stack, "kind": zoom.kind, "layer": zoom.layer}
    if page.where == "attention":
        stack, kind = _chosen().stack.split(".")
        return {"stack": stack, "kind": kind, "layer": _chosen().layer}
    if page.where == "layer":
        view, layer = current_view(), int(choices.get(f"{page.name}_layer") or 1) - 1
        stack, options = (
            choices.get(f"{page.name}_stack") or stacks[0],
            {option.name for option in view.options} if view else set(),
        )
        part = choices.get(f"{page.name}_part_{stack}") or "self"
        sublayer = KINDS.get(part) if "part" in options else None
        return {"stack": stack, "kind": sublayer, "layer": layer if "layer" in options else None}
    return {}


def _links(stacks: list[str]) -> dict[str, list[str]]:
    """Return page and query for each part of the model, by its name; those of a layer end before its number."""
    first: dict[str, tuple[Page, View | None]] = {}
    for page in reversed(pages().values()):
        first |= {view.where: (page, view) for view in page.views if view.where}
        if page.where:
            first[page.where] = page, next((view for view in page.views if view.where is None), None)
    state, chosen = replace(address.common(), lesson="", step=""), _chosen()
    common = {url_state.VERSION_NAME: str(url_state.VERSION)}
    common |= {name: text for name, text in address.to_query(state).items() if name not in _PLACE}
    place = {"stack": short_name(chosen.stack), "head": str(chosen.head + 1), "layer": str(chosen.layer + 1)}

    def link(where: str, own: Mapping[str, str]) -> list[str]:
        page, view = first[where]
        chosen = {f"{page.name}_view": view.view} if view is not None and view is not page.views[0] else {}
        return [page.name or "./", urlencode({**common, **chosen, **own})]

    links = {where: link(where, place) for where in first}
    for stack in STACKS:
        own = {"stack": short_name(stack.name), "head": place["head"], "layer": ""}
        links[stack.name] = link("attention", own)
    for name in stacks:
        side = {f"{first['tokens'][0].name}_side": "tgt"} if len(stacks) > 1 and name == "decoder" else {}
        links[f"{name}.tokens"] = link("tokens", {**place, **side})
        links[f"{name}.ffn"] = link("layer", {**place, **_feed_forward(first["layer"][0], name, stacks)})
    return links


def _feed_forward(page: Page, stack: str, stacks: list[str]) -> dict[str, str]:
    """Return the choices with which a page shows the feed-forward network of a layer, whose number is added last."""
    view = next(view for view in page.views if any(option.name == "layer" for option in view.options))
    setting = Setting(Source(), values={"stack": f"{stack}.self_attn"})
    keys = {option.name: option.key(page.name, setting) for option in view.options}
    choices = {f"{page.name}_view": view.view, keys["part"]: "ffn", keys["layer"]: ""}
    return {keys["stack"]: stack, **choices} if len(stacks) > 1 else choices
