"""Heads: ranked by what the model loses without each, pruned one after another, and those of known kinds."""

from visformer.app.pages import heads
from visformer.app.session import boxes
from visformer.app.widgets import controls, unavailable
from visformer.errors import N_
from visformer.pictures.heads import KNOWN, PAGE

NO_EFFECT = N_("This model is an encoder: it predicts no next token, so its heads have no effect on one.")

_ = boxes.gettext()
trace = controls.current_trace()

if trace is not None:
    view = PAGE.view(controls.view(_("View"), PAGE.titles, key="heads_view"))
    controls.look_for(_(view.look_for))
    part = "encoder" if "src" in trace.tokens else "decoder"
    needed = f"{part}.{next(iter(trace.layers(part)))}.self_attn.heads"
    if view is KNOWN:
        heads.known(trace)
    elif unavailable.kind_of(trace) == "encoder":
        unavailable.say(NO_EFFECT)
        unavailable.elsewhere()
    elif (reason := trace.lacks(needed)) is not None:
        unavailable.say(unavailable.NOT_TO_CHANGE, reason)
        unavailable.elsewhere()
    else:
        {"ranked": heads.ranked, "pruned": heads.pruned}[view.view]()
