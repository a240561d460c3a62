"""The whole model's layout, play and zoom, over made-up models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

BOTH = {"encoder": ("self_attn", "ffn"), "decoder": ("self_attn", "cross_attn", "ffn")}
SIDES = {"encoder": "src", "decoder": "tgt"}
SUMS = ("embed", "position", "input")
FAST = settings(max_examples=25)


@st.composite
def models(draw, longest=60):
    """Draw what layoutMap and stagesOf read of a model, from one layer with one head to 48 layers with 64."""
    names = draw(st.sampled_from([("encoder",), ("decoder",), ("encoder", "decoder")]))
    stacks, columns, tokens = [], [], {}
    words = st.sampled_from(["I", "喜欢", "unbelievable", "."])
    n_heads = draw(st.integers(1, 12) | st.integers(1, 64))
    for name in names:
        n, side = draw(st.integers(1, longest)), SIDES[name]
        tokens[side] = draw(st.lists(words, min_size=n, max_size=n))
        has_ffn, step = draw(st.booleans()), draw(st.integers(1, 2))
        kinds = [kind for kind in BOTH[name] if (kind != "ffn" or has_ffn) and (kind != "cross_attn" or len(names) > 1)]
        numbers = [step * i for i in range(draw(st.integers(1, 6) | st.integers(1, 48)))]
        empty = st.sampled_from(["", "", "its reason"])
        layers = [
            {"number": i, "sublayers": [{"kind": kind, "norms": None, "lacks": draw(empty)} for kind in kinds]}
            for i in numbers
        ]
        strips = [{"name": strip} for strip in SUMS if draw(st.booleans())]
        columns.append({"stack": name, "side": side, "strips": strips, "layers": layers})
        stacks += [
            {"name": f"{name}.{kind}", "shape": [len(numbers), n_heads, n, n]} for kind in kinds if kind != "ffn"
        ]
    predicts = "tgt" in tokens and draw(st.booleans())
    if "tgt" in tokens:
        tokens["next"] = [*tokens["tgt"][1:], "</s>"]
    steps = [{}] * len(tokens["tgt"]) if predicts else []
    return {"stacks": stacks, "columns": columns, "tokens": tokens, "steps": steps}


def empty_blocks(model):
    """Return stack, number of the layer and kind of each block that can only be named."""
    return {
        (column["stack"], layer["number"], one["kind"])
        for column in model["columns"]
        for layer in column["layers"]
        for one in layer["sublayers"]
        if one["lacks"]
    }


rooms = st.fixed_dictionaries({"width": st.integers(320, 1600), "height": st.integers(200, 1000)})

# Layout ---------------------------------------------------------------------------------------------------------------

LAYOUT = """
  const flat = ({ x, y, w, h }) => [x, y, w, h]
  const layout = m.layoutMap(args.model, args.room, args.wanted)
  const columns = layout.columns.map((column) => {
    const sublayers = column.layers.flatMap(({ sublayers = [] }) => sublayers)
    const heads = sublayers.map(({ heads }) => heads.map(({ rect }) => flat(rect)))
    const middle = ({ x, y, w, h }) => [x + w / 2, y + h / 2]
    const found = sublayers.map((sublayer) => sublayer.heads.map(({ rect }) => {
      const at = m.under(layout, ...middle(rect))
      return at && [at.column.stack, at.sublayer.layer, at.sublayer.kind, at.head?.head ?? null]
    }))
    const tokens = args.model.tokens[column.side]
    const parts = [column.bars, column.title].filter(Boolean)
    const written = [[column.tokens, column.words], [column.next, column.following]].filter(([rect]) => rect)
    const rows = written.map(([rect, row]) => tokens.map((_, i) => {
      const at = m.under(layout, row.at(i), middle(rect)[1])
      return at && [at.column.stack, at.row, Boolean(at.next)]
    }))
    const strips = column.strips.map(({ rect }) => m.under(layout, ...middle(rect))?.strip?.name ?? null)
    return {
      words: flat(column.tokens), next: column.next ? [flat(column.next)] : [], size: column.sizes.token,
      every: column.words.every, smallest: column.words.size, sentences: column.sentences,
      stack: column.stack, x: column.x, w: column.w, found, rows, strips, heads,
      centres: tokens.map((_, i) => column.centre(i)), inner: [column.inner.x, column.inner.w], slot: column.slot,
      parts: [...parts, ...column.strips.map(({ rect }) => rect)].map(flat),
      sublayers: sublayers.map(({ rect }) => flat(rect)), of: sublayers.map(({ layer, kind }) => [layer, kind]),
      layers: column.layers.map(({ number, folded, rect }) => [number ?? null, folded ?? null, flat(rect)]),
    }
  })
  const nowhere = m.under(layout, -1, -1)
  return { width: layout.width, height: layout.height, side: layout.side, columns, nowhere }
"""


def boxes(rects):
    """Return left, top, right and bottom, each (rectangle,)."""
    x, y, w, h = np.array(rects, dtype=float).reshape(-1, 4).T
    assert (w > 0).all()
    assert (h > 0).all()
    return x, y, x + w, y + h


def check_inside(rects, outer):
    left, top, right, bottom = boxes(rects)
    (x0,), (y0,), (x1,), (y1,) = boxes([outer])
    assert (left >= x0 - 1e-6).all()
    assert (top >= y0 - 1e-6).all()
    assert (right <= x1 + 1e-6).all()
    assert (bottom <= y1 + 1e-6).all()


def check_apart(rects):
    left, top, right, bottom = (side[:, None] for side in boxes(rects))
    before = (right <= left.T + 1e-6) | (bottom <= top.T + 1e-6)  # beside or above
    assert (before | before.T | np.eye(len(rects), dtype=bool)).all()


def laid_out(node, model, room, wanted=None):
    return node.run("map/layout.js", LAYOUT, {"model": model, "room": room, "wanted": wanted})


@FAST
@given(models(), rooms)
def test_parts_lie_inside_their_column_and_the_picture_and_do_not_overlap(node, model, room):
    layout = laid_out(node, model, room)
    assert layout["width"] == room["width"]
    assert [column["stack"] for column in layout["columns"]] == [column["stack"] for column in model["columns"]]
    outers = [[column["x"], 0, column["w"], layout["height"]] for column in layout["columns"]]
    check_inside(outers, [0, 0, layout["width"], layout["height"]])
    check_apart(outers)
    for column, outer in zip(layout["columns"], outers, strict=True):
        layers = [rect for *_, rect in column["layers"]]
        folded = [rect for number, _, rect in column["layers"] if number is None]
        check_inside([*column["parts"], *layers, *column["sublayers"]], outer)
        check_apart([*column["parts"], *layers, column["words"], *column["next"]])
        check_inside(
            [column["words"], *column["next"]],
            [0, 0, *(layout[name] for name in ("width", "height"))] if column["sentences"] else outer,
        )
        check_apart([*column["parts"], *folded, *column["sublayers"]])
        shown = {number: rect for number, _, rect in column["layers"]}
        for (number, _), rect in zip(column["of"], column["sublayers"], strict=True):
            check_inside([rect], shown[number])


@FAST
@given(models(), rooms)
def test_heads_are_equally_large_inside_their_sublayer_and_apart(node, model, room):
    layout = laid_out(node, model, room)
    n_heads = {stack["name"]: stack["shape"][1] for stack in model["stacks"]}
    for column in layout["columns"]:
        for place, rect, heads in zip(column["of"], column["sublayers"], column["heads"], strict=True):
            is_empty = (column["stack"], *place) in empty_blocks(model)
            assert len(heads) == (0 if is_empty else n_heads.get(f"{column['stack']}.{place[1]}", 0))
            if not heads:
                continue
            check_inside(heads, rect)
            check_apart(heads)
            assert np.ptp([head[2] for head in heads]) < 1e-9
            assert all(head[3] == layout["side"] for head in heads), "as high in every sublayer and column"


@FAST
@given(models(), rooms)
def test_layers_in_the_middle_are_folded_and_counted(node, model, room):
    layout = laid_out(node, model, room)
    for column, given_column in zip(layout["columns"], model["columns"], strict=True):
        numbers = [layer["number"] for layer in given_column["layers"]]
        shown = [number for number, *_ in column["layers"]]
        if None not in shown:
            assert shown == numbers
            continue
        first = shown.index(None)
        before, after = shown[:first], shown[first + 1 :]
        assert before == numbers[: len(before)]
        assert after == numbers[-len(after) :]
        assert 0 <= len(before) - len(after) <= 1
        assert min(len(before), len(after)) >= 1
        assert len(before) + len(after) + column["layers"][first][1] == len(numbers)
    assert all(len(column["layers"]) >= min(4, len(given_column["layers"])) for column, given_column in
               zip(layout["columns"], model["columns"], strict=True))  # fmt: skip


@FAST
@given(models(), rooms)
def test_heads_that_need_not_be_small_leave_the_picture_in_its_room(node, model, room):
    layout = laid_out(node, model, room)
    assert 9 <= layout["side"] <= 66
    if layout["side"] > 9 and all(any(column["heads"]) for column in layout["columns"]):
        assert layout["height"] <= room["height"] + 1e-6
    if any(folded for column in layout["columns"] for _, folded, _ in column["layers"]):
        assert layout["side"] == 9, "layers are left out only where heads would be too small"


@FAST
@given(models(), rooms)
def test_what_is_under_the_pointer_is_found(node, model, room):
    layout = laid_out(node, model, room)
    assert layout["nowhere"] is None
    for column, given_column in zip(layout["columns"], model["columns"], strict=True):
        stack = column["stack"]
        for (layer, kind), heads in zip(column["of"], column["found"], strict=True):
            assert heads == [[stack, layer, kind, head] for head in range(len(heads))]
        n = len(model["tokens"][given_column["side"]])
        for is_next, rows in enumerate(column["rows"]):
            assert rows == [[stack, row, bool(is_next)] for row in range(n)]
        assert column["strips"] == [strip["name"] for strip in given_column["strips"]]
        left, wide = column["inner"]
        np.testing.assert_allclose(np.diff(column["centres"]), column["slot"], rtol=1e-6)
        assert column["centres"][0] - column["slot"] / 2 >= left - 1e-6
        assert column["centres"][-1] + column["slot"] / 2 <= left + wide + 1e-6


@FAST
@given(models(longest=14), st.fixed_dictionaries({"width": st.integers(358, 1600), "height": st.integers(200, 1000)}))
def test_each_of_fourteen_tokens_has_its_name_which_touches_no_other(node, model, room):
    """As many as in a sentence of ten words: without some of them its words would read like another sentence."""
    for column in laid_out(node, model, room)["columns"]:
        assert column["every"] == 1
        assert 11.9 < column["smallest"] <= column["size"]


# Play -----------------------------------------------------------------------------------------------------------------

PLAY = """
  const { layoutMap } = await load("map/layout.js")
  const layout = layoutMap(args.model, args.room)
  const stages = m.stagesOf(args.model, layout.columns)
  for (const stage of Object.freeze(stages)) Object.freeze(stage)
  const keys = [...new Set(stages.map(({ key }) => key))]
  const scene = (time) => {
    const { stage, share, progress } = m.sceneAt(stages, time)
    return { at: stage ? stages.indexOf(stage) : null, share, progress: keys.map(progress) }
  }
  const end = m.lengthOf(stages)
  const times = args.shares.map((share) => share * end).sort((a, b) => a - b)
  const scenes = times.map(scene)
  const again = [...times].reverse().map(scene).reverse()
  const walk = (from, direction) => {
    const seen = [m.neighbour(stages, from, direction)]
    for (;;) {
      const time = m.neighbour(stages, seen.at(-1), direction)
      if (time === seen.at(-1)) return seen
      seen.push(time)
    }
  }
  return {
    stages, keys, end, scenes, isPure: JSON.stringify(scenes) === JSON.stringify(again),
    all: keys.map(m.sceneAt(stages, 0).all), starts: stages.map(({ start }) => scene(start).progress),
    first: scene(0), last: scene(end), rest: scene(Infinity),
    stops: m.stopsOf(stages),
    at_stops: m.stopsOf(stages).slice(0, -1).map((stop) => scene(stop).at),
    shown: layout.columns.map(({ layers }) => layers.filter(({ folded }) => !folded).map(({ number }) => number)),
    forward: walk(0, 1), back: walk(end, -1),
  }
"""
shares = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def played(node, model, room, shares=()):
    return node.run("map/timeline.js", PLAY, {"model": model, "room": room, "shares": [*shares]})


def expected_stages(model, shown):
    """Return (kind, key, word) of each stage: the stacks one after the other, the decoder word by word."""
    stages = []
    for column, numbers in zip(model["columns"], shown, strict=True):
        stack, kinds = column["stack"], [one["kind"] for one in column["layers"][0]["sublayers"]]
        computed = [(number, kind) for number in numbers for kind in kinds]
        computed = [place for place in computed if (stack, *place) not in empty_blocks(model)]
        blocks = [(kind, f"{stack}.{number}.{kind}") for number, kind in computed]
        if column["side"] == "tgt" and len(model["columns"]) == 2 and model["steps"]:
            stages.append(("start", f"{stack}.tokens", 0))
            for word in range(len(model["steps"])):
                last = "end" if word == len(model["steps"]) - 1 else "back"
                each = [*blocks, ("softmax", f"{stack}.softmax"), (last, f"{stack}.back")]
                if word == 0 and last == "back":
                    each.append(("handed", f"{stack}.handed"))
                stages += [(kind, key, word) for kind, key in each]
            continue
        parts = ["tokens", *(strip["name"] for strip in column["strips"] if strip["name"] != "input")]
        whole = [*((part, f"{stack}.{part}") for part in parts), *blocks]
        whole += [("memory", "encoder.memory")] * (stack == "encoder" and len(model["columns"]) == 2)
        predicts = column["side"] == "tgt" and bool(model["steps"])
        whole += [("logits", f"{stack}.softmax")] * predicts
        whole += [("done", f"{stack}.done")] * (column is model["columns"][-1] and not predicts)
        stages += [(kind, key, None) for kind, key in whole]
    return stages


@FAST
@given(models(), rooms)
def test_stages_follow_the_computation_and_each_begins_where_the_last_ended(node, model, room):
    play = played(node, model, room)
    stages = play["stages"]
    assert [(stage["kind"], stage["key"], stage["word"]) for stage in stages] == expected_stages(model, play["shown"])
    seconds = np.array([stage["seconds"] for stage in stages])
    assert (seconds > 0).all()
    np.testing.assert_allclose([stage["start"] for stage in stages], np.cumsum(seconds) - seconds, atol=1e-6)
    assert play["end"] == pytest.approx(seconds.sum())
    assert sum(stage["seconds"] for stage in stages if not stage["word"]) <= 15 + 1e-6, "the first word"
    assert play["end"] <= 60 + 1e-6


@FAST
@given(models(), rooms)
def test_a_presentation_pauses_at_the_end_of_what_is_done_for_the_first_time(node, model, room):
    play = played(node, model, room)
    *stops, last = play["stops"]
    kinds = [play["stages"][at]["kind"] for at in play["at_stops"]]
    assert last is None, "the end, which is infinity in JavaScript"
    assert stops == sorted(stops)
    assert len(kinds) == len(set(kinds)) <= 7
    for at in play["at_stops"]:
        earlier = [stage["kind"] for stage in play["stages"][:at]]
        assert play["stages"][at]["kind"] not in earlier
    every = {stage["kind"] for stage in play["stages"]}
    assert every - set(kinds) <= {"tokens", "embed", "start", "back", "end", "logits", "done"}


@FAST
@given(models(), rooms, shares)
def test_progress_never_falls_and_is_all_at_the_end(node, model, room, shares):
    play = played(node, model, room, shares)
    assert play["isPure"], "what is drawn depends on the time alone"
    progress = np.array([play["first"]["progress"], *(scene["progress"] for scene in play["scenes"])])
    progress = np.vstack([progress, play["last"]["progress"]])
    assert (np.diff(progress, axis=0) >= 0).all()
    assert not progress[0].any()
    counts = [[stage["key"] for stage in play["stages"]].count(key) for key in play["keys"]]
    assert play["last"]["progress"] == play["rest"]["progress"] == play["all"] == counts
    assert (play["last"]["at"], play["rest"]["at"], play["rest"]["share"]) == (None, None, 1)
    for scene in play["scenes"]:
        if scene["at"] is not None:
            key = play["keys"].index(play["stages"][scene["at"]]["key"])
            assert 0 <= scene["share"] < 1
            assert scene["progress"][key] % 1 == pytest.approx(scene["share"], abs=1e-6)


@FAST
@given(models(), rooms)
def test_at_the_start_of_a_stage_all_before_it_is_complete_and_nothing_else(node, model, room):
    """So a word's softmax is complete before the next word begins."""
    play = played(node, model, room)
    done = dict.fromkeys(play["keys"], 0)
    for stage, progress in zip(play["stages"], play["starts"], strict=True):
        assert progress == pytest.approx([done[key] for key in play["keys"]], abs=1e-6)
        if stage["kind"] == "softmax":
            assert done[stage["key"]] == stage["word"], "one prediction for each word before"
        done[stage["key"]] += 1


@FAST
@given(models(), rooms)
def test_steps_lead_through_all_stages_and_back(node, model, room):
    play = played(node, model, room)
    starts = [stage["start"] for stage in play["stages"]]
    assert play["forward"] == [*starts[1:], play["end"]]
    assert play["back"] == starts[::-1]


@FAST
@given(models(), rooms, st.data())
def test_a_layer_that_is_wanted_is_shown_and_all_are_counted(node, model, room, data):
    stack, layers = data.draw(st.sampled_from([(one["stack"], one["layers"]) for one in model["columns"]]))
    wanted = {"stack": stack, "layer": data.draw(st.sampled_from(layers))["number"]}
    for column, given_column in zip(laid_out(node, model, room, wanted)["columns"], model["columns"], strict=True):
        numbers = [number for number, *_ in column["layers"] if number is not None]
        all_of_it = [layer["number"] for layer in given_column["layers"]]
        assert column["stack"] != stack or wanted["layer"] in numbers
        assert numbers == [number for number in all_of_it if number in numbers]
        assert len(numbers) + sum(folded or 0 for _, folded, _ in column["layers"]) == len(all_of_it)


# Zoom -----------------------------------------------------------------------------------------------------------------

ZOOM = """
  const { layoutMap } = await load("map/layout.js")
  const layout = layoutMap(args.model, args.room)
  const places = [{ stack: "nowhere", layer: 0 }]
  for (const { stack, layers } of layout.columns)
    for (const { number: layer, rect, sublayers = [], folded } of layers) {
      if (folded) continue
      places.push({ stack, layer, rect })
      for (const { kind, rect, heads } of sublayers) {
        places.push({ stack, layer, kind, rect })
        for (const { head, rect } of heads) {
          const { x, y, w, h } = rect
          const n = args.model.tokens[stack === "encoder" ? "src" : "tgt"].length // both sides of a made-up head
          const [query, key] = [Math.floor(args.point.x * (n - 1)), Math.floor(args.point.y * (n - 1))]
          places.push({ stack, layer, kind, head, rect })
          const cell = { x: x + key / n * w, y: y + query / n * h, w: w / n, h: h / n }
          places.push({ stack, layer, kind, head, query, key, rect: cell })
        }
      }
    }
  const place = places[Math.floor(args.pick * places.length)]
  const start = m.inside({ ...args.view, x: args.view.x * layout.width, y: args.view.y * layout.height }, layout)
  const point = { x: args.point.x * layout.width, y: args.point.y * layout.height }
  const to = m.viewOf(place, layout)
  return {
    place, start, to, point, size: { width: layout.width, height: layout.height },
    way: [0, 0.25, 0.5, 0.75, 1].map((share) => m.between(start, to, share)),
    zoomed: m.zoomed(start, args.factor, point, layout), path: m.pathTo(place), around: m.around(place),
  }
"""
share = st.floats(0, 1)
zooms = st.fixed_dictionaries(
    {
        "pick": st.floats(0, 1, exclude_max=True),
        "view": st.fixed_dictionaries({"x": share, "y": share, "scale": st.floats(1, 60)}),
        "point": st.fixed_dictionaries({"x": share, "y": share}),
        "factor": st.floats(0.2, 5),
    }
)


def check_inside_picture(view, size, closest=60):
    assert 1 - 1e-9 <= view["scale"] <= closest
    for axis, length in (("x", size["width"]), ("y", size["height"])):
        assert -1e-6 <= view[axis] <= length - length / view["scale"] + 1e-6


def close(view, other):
    return all(view[name] == pytest.approx(other[name], rel=1e-6, abs=1e-6) for name in ("x", "y", "scale"))


@FAST
@given(models(), rooms, zooms)
def test_a_place_is_zoomed_to_whole_and_on_the_way_one_point_stays(node, model, room, chosen):
    zoom = node.run("map/zoom.js", ZOOM, {"model": model, "room": room, **chosen})
    size, start, to, way = zoom["size"], zoom["start"], zoom["to"], zoom["way"]
    check_inside_picture(to, size, closest=60 if "key" not in zoom["place"] else np.inf)
    rect = zoom["place"].get("rect")
    if rect and "key" in zoom["place"]:  # which fills the picture
        shown = [[to["x"], to["y"], size["width"] / to["scale"], size["height"] / to["scale"]]]
        check_inside(shown, [rect["x"], rect["y"], rect["w"] * (1 + 1e-9), rect["h"] * (1 + 1e-9)])
    elif rect:
        seen = [to["x"], to["y"], size["width"] / to["scale"], size["height"] / to["scale"]]
        check_inside([[rect[name] for name in "xywh"]], seen)
    else:
        assert to == {"x": 0, "y": 0, "scale": 1}
    assert close(way[0], start)
    assert close(way[-1], to)
    scales = np.log([view["scale"] for view in way])
    np.testing.assert_allclose(np.diff(scales), np.diff(scales).mean(), atol=1e-9)
    if abs(to["scale"] / start["scale"] - 1) > 0.01:
        for axis in "xy":  # the point of the screen at which both views show the same
            still = (to[axis] - start[axis]) / (1 / start["scale"] - 1 / to["scale"])
            shown = [view[axis] + still / view["scale"] for view in way]
            np.testing.assert_allclose(shown, shown[0], rtol=1e-4, atol=1e-3)


@FAST
@given(models(), rooms, zooms)
def test_the_point_under_the_pointer_stays_unless_an_edge_prevents_it(node, model, room, chosen):
    zoom = node.run("map/zoom.js", ZOOM, {"model": model, "room": room, **chosen})
    size, start, zoomed, point = zoom["size"], zoom["start"], zoom["zoomed"], zoom["point"]
    check_inside_picture(zoomed, size)
    assert zoomed["scale"] == pytest.approx(min(60, max(1, start["scale"] * chosen["factor"])))
    for axis, length in (("x", size["width"]), ("y", size["height"])):
        wanted = start[axis] + point[axis] / start["scale"] - point[axis] / zoomed["scale"]
        within = max(0, min(length - length / zoomed["scale"], wanted))
        assert zoomed[axis] == pytest.approx(within, abs=1e-6)


@FAST
@given(models(), rooms, zooms)
def test_the_path_to_a_place_names_each_place_around_it(node, model, room, chosen):
    zoom = node.run("map/zoom.js", ZOOM, {"model": model, "room": room, **chosen})
    place = {name: value for name, value in zoom["place"].items() if name != "rect"}
    named = [names for names in (("layer",), ("kind",), ("head",), ("query", "key")) if names[0] in place]
    assert len(zoom["path"]) == len(named)
    for n, one in enumerate(zoom["path"][:-1], start=1):
        assert one == {"stack": place["stack"], **{name: place[name] for names in named[:n] for name in names}}
    assert zoom["around"] == (zoom["path"][-2] if len(named) > 1 else None)


FOLLOWED = """
  const { layoutMap } = await load("map/layout.js")
  const { lengthOf, stagesOf } = await load("map/timeline.js")
  const layout = layoutMap(args.model, args.room)
  const stages = stagesOf(args.model, layout.columns)
  const end = lengthOf(stages)
  const times = [...args.shares.map((share) => share * end), ...stages.map(({ start }) => start)]
  const view = (time) => m.followed(stages, time, layout)
  return {
    views: times.map(view), later: times.map((time) => view(time + 1e-5)), rest: view(Infinity), last: view(end - 1e-6),
    size: { width: layout.width, height: layout.height },
  }
"""


@FAST
@given(models(), rooms, shares)
def test_the_play_is_followed_inside_the_picture_without_a_jump_and_ends_with_the_whole(node, model, room, shares):
    found = node.run("map/zoom.js", FOLLOWED, {"model": model, "room": room, "shares": [*shares]})
    for view, later in zip(found["views"], found["later"], strict=True):
        check_inside_picture(view, found["size"], closest=2.2)
        assert all(abs(view[name] - later[name]) < 0.1 for name in ("x", "y", "scale"))
    assert found["rest"] == {"x": 0, "y": 0, "scale": 1}
    assert close(found["last"], found["rest"])
