"""A guided lesson as one file: what each step's page shows, drawn without the page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from visformer.app.lessons.lesson_file import Lesson, Step
from visformer.app.session import url_state
from visformer.app.session.examples import EXAMPLES
from visformer.i18n import translations
from visformer.pictures.theme import visible
from visformer.web.selection import Selection
from visformer.web.slides import Part, Slide, slides

if TYPE_CHECKING:  # torch
    from visformer.export.named import Asked
    from visformer.trace import Trace

ModelOf = Callable[[str], Any]
"""The name of a model, "" for the first, to the model."""

_FOLLOWED = {
    "": (),
    "tokens": ("side", "piece"),
    "embedding": ("side",),
    "positions": ("view", "n", "d"),
    "masks": ("view", "stack", "layer", "head"),
    "head": ("view",),
    "block": ("view", "stack", "layer", "part_encoder", "part_decoder"),
    "decoding": ("view", "beams"),
}
"""Page to what of its choices a file can show; a step that asks for more is live only."""

_POSITIONS = {"waves": "waves", "matrix": "positions", "angles": "position-angles", "similarity": "position-similarity"}
_BLOCK = {"stream": "stream", "zeros": "zeros", "similar": "similarity"}
_HEAD = {"steps": "query", "joined": "all-heads"}


def page(lesson: Lesson, language: str, *, model_of: ModelOf) -> str:
    """The lesson as HTML that loads nothing.

    Args:
        lesson: what to show.
        language: of its texts, and of the words on the pictures.
        model_of: gives the models that its steps are about.

    Raises:
        VisformerError: a model cannot be had, or a sentence cannot be run.
    """
    gettext = translations(language).gettext
    shown = [_slide(step, language, model_of) for step in lesson.steps]
    return slides(lesson.called(language), shown, gettext=gettext, lang=language)


def trace_of(state: url_state.State, model_of: ModelOf, record: tuple[str, ...] = ("*.pattern",)) -> "Trace":
    """The Trace of a step's sentence."""
    trace: Trace = model_of(state.model).trace(state.text or EXAMPLES[0], state.target or None, record=record)
    return trace


def _slide(step: Step, language: str, model_of: ModelOf) -> Slide:
    picture = _Picture(step.state, language, model_of)
    follows = {f"{step.state.page}_{name}" for name in _FOLLOWED.get(step.state.page, ())}
    is_drawn = step.state.page in _FOLLOWED and {*step.state.choices} <= follows
    parts = tuple(getattr(picture, step.state.page or "attention")()) if is_drawn else ()
    return Slide(step.said("title", language), step.said("say", language), step.said("try", language), parts)


@dataclass(frozen=True)
class _Picture:
    """The parts that a page shows, by the page's name; a view that has to be live gives none."""

    state: url_state.State
    language: str
    model_of: ModelOf

    @property
    def gettext(self) -> Callable[[str], str]:
        return translations(self.language).gettext

    def chosen(self, name: str, first: str) -> str:
        """A choice of the page."""
        return self.state.choices.get(name, first)

    def count(self, name: str, first: int) -> int:
        """A choice that counts from 1."""
        chosen = self.chosen(name, str(first))
        return int(chosen) if chosen.isdecimal() and int(chosen) else first

    def attention(self) -> list[Part]:
        """The explorer."""
        from visformer.web.chunks import focus_from
        from visformer.web.payload import pack, pack_rest

        trace = trace_of(self.state, self.model_of)
        start = self.state.selection.fitting(trace)[0].start()
        picture = pack(trace, gettext=self.gettext, lang=self.language, start=start)
        return [Part("attention", picture, pack_rest(trace, focus=focus_from({"focus": start})) or b"")]

    def tokens(self) -> list[Part]:
        """Every token, and the merges of the longest piece."""
        from visformer.pictures import tokens

        _, side = self.gettext, self.chosen("tokens_side", "src")
        trace, text = trace_of(self.state, self.model_of), self.model_of(self.state.model).text
        heads = [_("position"), _("token"), _("number"), _("what it is")]
        rows = [[str(r.position), visible(r.token), str(r.id), _(r.meaning)] for r in tokens.rows(trace, side)]
        parts = [Part("table", table=[heads, *rows], title=_("The tokens and their numbers"))]
        said = str(trace.meta.get("source" if side == "src" else "target") or "")
        pieces = [piece for piece in dict.fromkeys(text.pieces(said)) if len(piece.strip()) > 1]
        if text.scheme == "BPE" and pieces:
            at = self.count("tokens_piece", pieces.index(max(pieces, key=len)) + 1)
            steps = text.merging(pieces[min(at, len(pieces)) - 1])
            merged = zip(range(len(steps)), steps, tokens.merges(steps), strict=True)
            lines = [[str(i), " · ".join(map(visible, s)), " + ".join(map(visible, m))] for i, s, m in merged]
            heads = [_("merge"), _("parts"), _("merged")]
            parts.append(Part("table", table=[heads, *lines], title=_("How letters are merged")))
        return parts

    def embedding(self) -> list[Part]:
        """The two summands and their sum."""
        part = "decoder" if self.chosen("embedding_side", "src") == "tgt" else "encoder"
        return self.named("embedding", part=part)

    def positions(self) -> list[Part]:
        """The encoding of the paper."""
        name = _POSITIONS.get(self.chosen("positions_view", "waves"))
        d_model = self.count("positions_d", self._asked().d_model)
        return self.named(name, positions=self.count("positions_n", 24), d_model=d_model)

    def masks(self) -> list[Part]:
        """The scores, the mask and what is left."""
        place = {name: self.chosen(f"masks_{name}", "1") for name in ("layer", "head")}
        place["stack"] = self.chosen("masks_stack", "decoder")
        is_scores = self.chosen("masks_view", "batch") == "scores"
        return self.named("mask" if is_scores else None, **_place(Selection.from_link(place)[0]))

    def head(self) -> list[Part]:
        """Inside a head."""
        selection = self.state.selection
        query = 1 if selection.query is None else selection.query
        return self.named(_HEAD.get(self.chosen("head_view", "steps")), query=query, **_place(selection))

    def block(self) -> list[Part]:
        """The residual stream, and what is added to it."""
        view, stack = self.chosen("block_view", "stream"), self.chosen("block_stack", "encoder")
        name, kind = _BLOCK.get(view), "self_attn"
        if view == "added":
            part = self.chosen(f"block_part_{stack}", "self")
            name, kind = ("feed-forward" if part == "ffn" else "sublayer"), f"{part}_attn"
        return self.named(name, part=stack, kind=kind, layer=self.count("block_layer", 1) - 1)

    def decoding(self) -> list[Part]:
        """How sure each step is, and the first one's candidates; or the tree of beam search."""
        if self.chosen("decoding_view", "steps") == "beams":
            return self.named("beams", beams=self.count("decoding_beams", 4))
        return [*self.named("sureness"), *self.named("candidates")]

    def named(self, name: str | None, **choices: Any) -> list[Part]:
        """One of :data:`visformer.export.named.PICTURES`; None: none of them."""
        if name is None:
            return []
        from visformer.export import figure_svg
        from visformer.export.curves import is_figure
        from visformer.export.named import draw
        from visformer.web.panels import pack_panels

        asked = replace(self._asked(), **choices)
        shown = draw(name, asked)
        if is_figure(shown):
            dark = draw(name, replace(asked, theme="dark"))
            return [Part("image", images=(figure_svg(shown), figure_svg(dark)))]
        return [Part("panels", pack_panels(shown, gettext=self.gettext, lang=self.language))]

    def _asked(self) -> "Asked":
        from visformer.export.named import Asked

        model = self.model_of(self.state.model)

        def speak(**settings: Any) -> Any:
            return model.translate(self.state.text or EXAMPLES[0], **settings)

        def trace(record: tuple[str, ...]) -> "Trace":
            return trace_of(self.state, self.model_of, record)

        return Asked(trace=trace, speak=speak, d_model=model.info.d_model, gettext=self.gettext)


def _place(selection: Selection) -> Mapping[str, Any]:
    part, kind = selection.stack.split(".")
    return {"part": part, "kind": kind, "layer": selection.layer, "head": selection.head}
