"""Text is data: what Streamlit reads as Markdown is made of our own words, numbers, and what `plain` has escaped."""

import ast
from functools import cache
from string import Formatter

import pytest

from tests.test_hard_coded import DRAWING, name_of

SHOWN = frozenset(
    """
    badge button caption checkbox dialog download_button error exception expander feedback file_uploader header info
    latex link_button markdown metric multiselect number_input pills popover progress radio segmented_control
    select_slider selectbox slider spinner status subheader success table tabs text_area text_input title toast toggle
    warning write
    """.split()
)
"""Methods of Streamlit whose first argument is Markdown; of `progress` the second."""

ONLY_ST = frozenset(("error", "exception", "status", "table", "write"))
"""Those that others have, too: a log, a future, a file."""

NAMED = frozenset(("label", "help", "body", "text"))
"""Arguments of these methods that are Markdown wherever they are named."""

OPTIONS = frozenset(("pills", "segmented_control", "radio"))
"""Methods whose options are Markdown, too; those of a `selectbox` are not."""

NUMBERS = frozenset("float int len nunique round size sum".split())
"""Calls that return a number or, `limits.size`, words of ours about one."""

PASSED_ON = frozenset(
    "DataFrame compile enumerate get items join list next paragraph replace set_index split sub zip".split()
)
"""Calls that return no more than what they are given."""

OURS = frozenset("coloured coloured_text explained languages shapes step_of told".split())
"""Functions below `app/` that return words of ours, formulas of ours or numbers."""

HARMLESS = frozenset(("int", "float", "bool", "Message", "Scene"))
"""Types of parameters that hold no text of others."""

FUNCTION = (ast.FunctionDef, ast.Lambda)


def parts_of(node):
    """Return what an expression is made of; None: it cannot be told."""
    match node:
        case None | ast.Constant() | ast.Compare():
            return []
        case ast.IfExp(body=one, orelse=other):
            return [one, other]
        case ast.BoolOp(values=each) | ast.List(elts=each) | ast.Tuple(elts=each) | ast.Dict(values=each):
            return each
        case ast.ListComp(elt=each) | ast.GeneratorExp(elt=each) | ast.Lambda(body=each):
            return [each]
        case ast.DictComp(value=each) | ast.Starred(value=each) | ast.Subscript(value=each):
            return [each]
    return None


class Walk:
    """What reaches Markdown in files, given as the tree of each by its path."""

    def __init__(self, trees):
        self.trees = trees
        self.above = {below: node for tree in trees.values() for node in ast.walk(tree)
                      for below in ast.iter_child_nodes(node)}  # fmt: skip
        self.path_of = {id(tree): path for path, tree in trees.items()}
        self.functions = {}
        for node in (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            self.functions.setdefault(node.name, []).append(node)
        self.shown = set()  # (function, parameter) whose arguments become Markdown
        self.looking = set()

    def found(self):
        """Return file, line and text of each argument that may be somebody else's text."""
        calls = [(path, node) for path, tree in self.trees.items() for node in ast.walk(tree)
                 if isinstance(node, ast.Call)]  # fmt: skip
        before, found = -1, []
        while len(self.shown) > before:  # each round finds parameters that become Markdown
            before = len(self.shown)
            found = [
                f"{path}:{node.lineno}: {ast.unparse(node)}"
                for path, call in calls
                for node in self.drawn(call)
                if not self.is_ours(node)
            ]
        return sorted({*found})

    def drawn(self, call):
        """Yield the arguments of a call that are Markdown."""
        name = name_of(call.func)
        is_st = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id
        if isinstance(call.func, ast.Attribute) and name in SHOWN and (name not in ONLY_ST or is_st == "st"):
            yield from call.args[1:2] if name == "progress" else call.args[:1]
            yield from (each.value for each in call.keywords if each.arg in NAMED)
            if name in OPTIONS:
                yield from [each.value for each in call.keywords if each.arg == "format_func"] or call.args[1:2]
        elif name == "page_link" or isinstance(call.func, ast.Call):  # getattr(place, widget)(…)
            yield from (each.value for each in call.keywords if each.arg in NAMED)
        for function in self.called(call):
            in_order = [each.arg for each in function.args.args]
            given = [*zip(in_order, call.args, strict=False), *((each.arg, each.value) for each in call.keywords)]
            yield from (value for each, value in given if (function, each) in self.shown)

    def called(self, call):
        """Return the functions of these files that a call may be of."""
        name = name_of(call.func)
        every = self.functions.get(name, [])
        if isinstance(call.func, ast.Attribute):
            return [each for each in every if self.file(each).stem == ast.unparse(call.func.value).split(".")[-1]]
        return [each for each in every if self.file(each) == self.file(call)] or [
            each for each in every if not name.startswith("_")
        ]

    def file(self, node):
        """Return the path of the file of a node."""
        while node in self.above:
            node = self.above[node]
        return self.path_of[id(node)]

    def is_ours(self, node):
        """Whether an expression is made of our own words, numbers and escaped text only."""
        if id(node) in self.looking:
            return True  # a name that is made from itself
        self.looking.add(id(node))
        try:
            return self._is_ours(node)
        finally:
            self.looking.discard(id(node))

    def _is_ours(self, node):
        match node:
            case ast.Name():
                return self.is_our_name(node)
            case ast.Call():
                return self.is_our_call(node)
            case ast.Attribute(value=each, attr=name):  # or a constant that another file declares
                return self.is_ours(each) if name == "__getitem__" else name.isupper()
            case ast.JoinedStr(values=values):
                values = (each for each in values if isinstance(each, ast.FormattedValue))
                return all(each.format_spec is not None or self.is_ours(each.value) for each in values)
            case ast.BinOp(left=left, right=right):  # a number plus one is a number
                one = any(isinstance(each, ast.Constant) and not isinstance(each.value, str) for each in (left, right))
                return one or (self.is_ours(left) and self.is_ours(right))
        parts = parts_of(node)
        return parts is not None and all(map(self.is_ours, parts))

    def is_our_call(self, node):
        """Whether what a call returns is ours: a message, what `plain` returns, a number, or a function of ours."""
        name, given = name_of(node.func), [*node.args, *(each.value for each in node.keywords)]
        if name in NUMBERS | OURS | {"plain"}:
            return True
        if name in ("_", "N_") or (isinstance(node.func, ast.Call) and name_of(node.func.func) == "gettext"):
            return all(map(self.is_message, given))
        if name == "format":
            return self.is_ours(node.func.value) and all(
                each.arg in self.numeric(node.func.value) or self.is_ours(each.value) for each in node.keywords
            )
        if name == "map" and name_of(node.args[0]) == "plain":
            return True
        if name in PASSED_ON:
            given = given[1:] if name == "get" else given
            is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in (
                "i18n",
                "pd",
                "re",
            )
            return all(map(self.is_ours, [*([node.func.value] if is_method else []), *given]))
        functions = self.called(node)
        return bool(functions) and all(map(self.returns_ours, functions))

    def is_message(self, node):
        """Whether what is translated is a message that something declares; a name has to be set to one."""
        match node:
            case ast.Attribute() | ast.Subscript() | ast.Call():
                return True
            case ast.IfExp(body=one, orelse=other):
                return self.is_message(one) and self.is_message(other)
            case ast.BoolOp(values=each):
                return all(map(self.is_message, each))
            case ast.List(elts=each):
                return all(map(self.is_message, each))
            case ast.ListComp(elt=each):
                return self.is_message(each)
            case ast.Name() if values := self.values_of(node):
                return all(map(self.is_message, values))
        return self.is_ours(node)

    def numeric(self, template):
        """Return the values of a template that are written as numbers: of anything else, that is an error."""
        texts = [template, *(self.values_of(template) if isinstance(template, ast.Name) else ())]
        constants = {inner.value for text in texts for inner in ast.walk(text) if isinstance(inner, ast.Constant)}
        specs = {}
        for text in filter(lambda each: isinstance(each, str), constants):
            for _, name, spec, _ in Formatter().parse(text):
                specs.setdefault(name, []).append(spec)
        return {name for name, each in specs.items() if all(each)}

    @cache  # noqa: B019
    def returns_ours(self, function):
        """Whether all that a function returns is ours."""
        returned = [node.value for node in ast.walk(function)
                    if isinstance(node, ast.Return) and self.scope(node) is function]  # fmt: skip
        return bool(returned) and all(map(self.is_ours, returned))

    def scope(self, node):
        """Return the innermost function or, outside of all, the file that a node is in."""
        node = self.above[node]
        while node in self.above and not isinstance(node, FUNCTION):
            node = self.above[node]
        return node

    def is_our_name(self, node):
        """Whether all that a name is set to is ours; a parameter's arguments are asked about at its calls."""
        scope = node
        while scope in self.above:
            scope = self.scope(scope)
            arguments = getattr(scope, "args", None)
            every = [*arguments.args, *arguments.kwonlyargs] if arguments is not None else []
            parameter = next((each for each in every if each.arg == node.id), None)
            values = self.set_in(scope, node.id)
            if parameter is not None:
                if parameter.annotation is None or ast.unparse(parameter.annotation) not in HARMLESS:
                    self.shown.add((scope, node.id))
                return all(map(self.is_ours, values))
            if values:
                return all(map(self.is_ours, values))
        functions = self.functions.get(node.id, [])
        if functions and node.id != "plain":
            return all(map(self.returns_ours, functions))
        return node.id == "plain" or node.id.isupper()  # a constant that another file declares

    def values_of(self, name):
        """Return what a name is set to where it is looked up."""
        scope = name
        while scope in self.above:
            scope = self.scope(scope)
            if values := self.set_in(scope, name.id):
                return values
        return []

    @cache  # noqa: B019
    def set_in(self, scope, name):
        """Return what a name is set to in a function or a file, or in turn by a loop there."""
        found = []
        for node in ast.walk(scope):
            if self.above.get(node) is None or self.scope(node) is not scope:
                continue
            match node:
                case ast.Assign(targets=targets, value=value):
                    found += [each for target in targets for each in self.matched(target, value, name)]
                case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value):
                    found += self.matched(target, value, name)
                case ast.NamedExpr(target=target, value=value):
                    found += self.matched(target, value, name)
                case ast.For(target=target, iter=many) | ast.comprehension(target=target, iter=many):
                    found += self.in_turn(target, many, name)
        return found

    def matched(self, target, value, name):
        """Return what an assignment sets a name to."""
        if isinstance(target, ast.Name):
            return [value] if target.id == name else []
        if not isinstance(target, ast.Tuple):
            return []
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            pairs = zip(target.elts, value.elts, strict=True)
            return [each for one, of in pairs for each in self.matched(one, of, name)]
        return [value for one in target.elts if self.matched(one, value, name)]

    def in_turn(self, target, many, name):
        """Return what a loop sets a name to."""
        called = name_of(many.func) if isinstance(many, ast.Call) else ""
        if called == "range":
            return self.matched(target, ast.Constant(0), name)
        if called == "enumerate":
            counted, each = target.elts
            return [*self.matched(counted, ast.Constant(0), name), *self.in_turn(each, many.args[0], name)]
        if isinstance(many, ast.Tuple | ast.List):
            return [value for one in many.elts for value in self.matched(target, one, name)]
        return self.matched(target, many, name)


def test_what_is_markdown_is_our_own_or_escaped():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(DRAWING)}
    assert not Walk(trees).found()


@pytest.mark.parametrize(
    "code",
    [
        "st.caption(atlas.model)",
        'st.info(_("Of {model}").format(model=name.strip()))',
        "st.info(error.localized(_))",
        'said = f"{row.text}"\nst.button(said)',
        "def say(text):\n    left.caption(text)\nsay(trace.text)",
        "def say(reason: str):\n    st.info(_(reason))\nsay(trace.lacks(name))",
        "def name():\n    return row.name\nst.header(name())",
        'st.text_input(_("A"), help=row.help)',
        'st.pills(_("A"), [*sentences])',
        'st.segmented_control(_("A"), range(3), format_func=lambda i: tokens[i])',
        'getattr(place, widget)(label=row.name, key="a")',
        "for row in rows:\n    st.badge(row)",
        "st.table(pd.DataFrame([(row.name, 1)]))",
        "bar.progress(0.5, row.name)",
    ],
)
def test_a_text_of_others_is_found(code, tmp_path):
    assert Walk({tmp_path / "page.py": ast.parse(code)}).found()


@pytest.mark.parametrize(
    "code",
    [
        'st.caption(_("{n} of {model}").format(n=len(rows), model=plain(atlas.model)))',
        'st.caption(_("{share:.0%}").format(share=trace.share))',
        'st.button(f"{row.layer + 1} {row.share:.2f}")',
        'st.pills(_("A"), [*sentences], format_func=plain)',
        "st.caption(_(option.label))",
    ],
)
def test_what_is_ours_is_not(code, tmp_path):
    assert not Walk({tmp_path / "page.py": ast.parse(code)}).found()
