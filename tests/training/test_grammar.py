"""The synchronous grammar: consistent files, well-formed aligned sentences, apart from what evaluates."""

import json
import random
import re
import shutil
from collections import Counter

import pytest

from visformer.errors import DataError
from visformer.training import grammar as generate
from visformer.training import lexicon, supplement
from visformer.training.grammar import parse_rule
from visformer.training.supplement import plain

# https://universaldependencies.org/u/dep/
RELATIONS = set(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative "
    "xcomp".split()
)
COLUMNS = {"kinds": 4, "nouns": 8, "verbs": 9, "adjectives": 6, "adverbs": 3, "numbers": 5, "pronouns": 9}
RULES = ("rules", "phrases", "times")
DETERMINED = ("object", "bare", "general", "subject")


@pytest.fixture(scope="module")
def grammar():
    return generate.load()


@pytest.fixture(scope="module")
def many(grammar):
    return generate.sample(grammar, 1500, seed=0)


def rows_of(name):
    return supplement.read_rows(generate.FOLDER / f"{name}.tsv", columns=COLUMNS.get(name, 5))


def tree_is_sound(heads):
    if sum(head == -1 for head in heads) != 1:
        return False
    for word in range(len(heads)):
        path = []
        while word != -1 and word not in path:
            path.append(word)
            word = heads[word]
        if word != -1:
            return False
    return True


# ---- the files


def test_cells_are_tidy_and_no_row_is_there_twice():
    for name in (*COLUMNS, *RULES):
        for row in rows_of(name):
            assert all(cell == cell.strip() and "  " not in cell for cell in row), row
    keys = {"kinds": [0], "nouns": [1, 3], "verbs": [1, 3, 4, 6], "adjectives": [1, 3], **{name: [0] for name in RULES}}
    for name, columns in keys.items():
        found = Counter(tuple(row[i] for i in columns) for row in rows_of(name))
        assert [key for key, count in found.items() if count > 1] == [], name


def test_words_named_elsewhere_exist(grammar):
    nouns = {tag for entry in grammar.entries if entry.part == "noun" for tag in entry.tags}
    kinds = {row[0] for row in rows_of("kinds")}
    wrong = [
        (entry.key, tag)
        for entry in grammar.entries
        for tag in (*entry.subject, *entry.object)
        if tag not in (nouns if tag[0] == "=" else kinds)
    ]
    assert wrong == []


def test_words_named_in_rules_exist(grammar):
    tags = {tag for entry in grammar.entries for tag in entry.tags}
    slots = [(rule, slot) for rule in grammar.rules for slot in rule.slots]
    wrong = [
        (rule.name, tag)
        for rule, slot in slots
        for group in slot.need
        for tag in group
        if tag != "this" and "." not in tag and tag not in {s.name for s in rule.slots} and tag.lstrip("!") not in tags
    ]
    assert wrong == []


def test_patterns_and_aspects():
    for row in rows_of("verbs"):
        aspect, *use = row[5].split()
        assert row[4] in {"i", "t", "own", "d", "to", "that", "place", "go"}, row
        assert aspect in {"act", "change", "state", "habit"}, row
        assert set(use) <= {"plan", "known"}, row
        assert bool(row[7]) == (row[4] in {"t", "own", "d", "place", "go"}), row


def test_enough_words(grammar):
    words = {entry.key for entry in grammar.entries if entry.part in {"noun", "verb", "adjective", "adverb"}}
    assert len(words) >= 3000


def test_every_rule_can_be_drawn(grammar):
    reached, waiting = set(), ["sentence"]
    while waiting:
        category = waiting.pop()
        rules = [rule for rule in grammar.rules if rule.name.startswith(f"{category}.")]
        waiting += {s.category for r in rules for s in r.slots} - generate.PARTS - reached
        reached.add(category)
    assert {rule.name.partition(".")[0] for rule in grammar.rules} - reached == set()
    rng = random.Random(0)
    for rule in grammar.rules:
        assert any(is_drawn(grammar, rule, rng) for _ in range(30)), rule.name


def is_drawn(grammar, rule, rng):
    try:
        return generate.compose(grammar.fill(rule, rng=rng), rng) is not None
    except generate.DeadEnd:
        return False


def test_every_word_can_be_drawn(grammar):
    rules = grammar.rules
    fixed = [
        (slot.category, [group for group in slot.need if group[0] != "this" and not group[0][0].isupper()])
        for rule in rules
        for slot in rule.slots
        if slot.category in generate.PARTS and (slot.category != "noun" or not rule.name.startswith(DETERMINED))
    ]
    determined = [
        slot.need[1:] for rule in rules if rule.name.startswith(DETERMINED) for slot in rule.slots if slot.need
    ]
    asked = {group for entry in grammar.entries for group in (entry.subject, entry.object) if group}

    def drawable(entry):
        if any(part == entry.part and all(generate.meets(entry, g) for g in needs) for part, needs in fixed):
            return True
        fits = entry.part == "noun" and any(generate.meets(entry, group) for group in asked)
        return fits and any(all(generate.meets(entry, group) for group in needs) for needs in determined)

    assert [entry.key for entry in grammar.entries if entry.key.split()[0] != "name" and not drawable(entry)] == []


def test_few_dead_ends(grammar):
    rng = random.Random(1)
    failures = 0
    for _ in range(1000):
        try:
            grammar.draw("sentence", (), rng=rng)
        except generate.DeadEnd:
            failures += 1
    assert failures < 20


# ---- the sentences


def test_trees(many):
    for s in many:
        for words, heads, relations in (
            (s.en_words, s.en_heads, s.en_relations),
            (s.zh_words, s.zh_heads, s.zh_relations),
        ):
            assert len(words) == len(heads) == len(relations)
            assert tree_is_sound(heads), s
            assert {relation.partition(":")[0] for relation in relations} <= RELATIONS, s
            assert [relation == "root" for relation in relations] == [head == -1 for head in heads]


def test_words_give_the_text(many):
    for s in many:
        assert "".join(s.en_words).replace(" ", "") == s.en.replace(" ", "")
        assert "".join(s.zh_words) == s.zh
        assert re.fullmatch(r"[A-Z].*[^ ][.?!]", s.en), s.en
        assert (s.en[-1], s.zh[-1]) in {(".", "。"), ("?", "？"), ("!", "！")}
        assert not re.search(r"[ .,?!]", s.zh), s.zh


def test_words_of_the_lexicon_are_linked(grammar, many):
    entries = {entry.key: entry for entry in grammar.entries}
    for s in many:
        assert all(i < len(s.en_words) and j < len(s.zh_words) for i, j in s.links)
        linked = {s.zh_words[j] for _, j in s.links}
        for key in s.rows:
            forms = [forms[0] for name, forms in entries[key].zh.items() if name in {"", "count"}]
            assert any({text for text, _, _ in form} <= linked for form in forms), (s, key)


def test_same_seed_same_sentences(grammar):
    first = generate.sample(grammar, 60, seed=7)
    assert first == generate.sample(generate.load(), 60, seed=7)
    assert first != generate.sample(grammar, 60, seed=8)


def test_indefinite_article(many):
    text = "\n".join(s.en for s in many)
    vowels = {word for word in re.findall(r"\b[Aa]n (\w+)", text) if word[0].lower() not in "aeiou"}
    consonants = {word for word in re.findall(r"\b[Aa] (\w+)", text) if word[0].lower() in "aeiou"}
    assert vowels <= {"hour"}
    assert all(re.match("uni|use|one|eu", word, re.IGNORECASE) for word in consonants), consonants


def test_agreement(grammar, many):
    verbs = [entry for entry in grammar.entries if entry.part == "verb"]
    spelled = {name: {entry.en[name][0][0][0] for entry in verbs} for name in ("base", "past", "s")}
    wrong = (spelled["past"] | spelled["s"]) - spelled["base"]
    for s in many:
        assert not re.search(r"\b(I|[Yy]ou|[Ww]e|[Tt]hey) (is|has|does|wants)\b", s.en), s.en
        assert not re.search(r"\b(He|She|It) (are|have|do|want)\b", s.en), s.en
        assert not re.search(r"\b(these|those|[Tt]wo|three|four|five|many) \w+ (is|was)\b", s.en), s.en
        for _, verb in re.findall(r"\b(?:did|does|do|will|can|must|should)( not|n't)? ([a-z]+)\b", s.en):
            assert verb not in wrong, s.en


def test_measure_words(grammar, many):
    nouns = {"".join(t for t, _, _ in e.zh[""][0]) for e in grammar.entries if e.part == "noun" and "counted" in e.tags}
    numbers = {e.zh["count"][0][0][0] for e in grammar.entries if e.part == "number"}
    counted = 0
    for s in many:
        assert not re.search("二[个本张只条辆块点]", s.zh.replace("十二", "").replace("百二", "")), s.zh
        for i, head in enumerate(s.zh_heads):
            if s.zh_relations[i] == "nummod" and s.zh_words[i] in numbers and s.zh_words[head] in nouns:
                counted += 1
                assert "clf" in [s.zh_relations[j] for j, h in enumerate(s.zh_heads) if h == i], s.zh
    assert counted > 50


def test_hand_checked_analysis(grammar):
    """Written down from the guidelines of Universal Dependencies, not from what the program gave."""
    rule = next(rule for rule in grammar.rules if rule.name == "able.need_new")
    entries = {entry.key: entry for entry in grammar.entries}
    values = {"S": generate.Drawn(entries["pronoun he 他"], 0), "N": generate.Drawn(entries["noun shirt 衬衫"], 0)}
    s = generate.compose(generate.Phrase(rule, values), random.Random(0))
    assert s.en_words == ("He", "needs", "a", "new", "shirt")
    assert s.zh_words == ("他", "需要", "一", "件", "新", "衬衫")
    assert s.en_heads == (1, -1, 4, 4, 1)
    assert s.zh_heads == (1, -1, 5, 2, 5, 1)
    assert s.en_relations == ("nsubj", "root", "det", "amod", "obj")
    assert s.zh_relations == ("nsubj", "root", "nummod", "clf", "amod", "obj")
    assert s.links == ((0, 0), (1, 1), (2, 2), (3, 4), (4, 5))


def test_spelling():
    for text, short, expected in (
        ("it is a apple .", False, "It is an apple."),
        ("wait a hour .", False, "Wait an hour."),
        ("a university", False, "A university"),
        ("I am not here .", True, "I'm not here."),
        ("they do not know .", True, "They don't know."),
        ("he can not swim .", True, "He can't swim."),
        ("he can not swim .", False, "He cannot swim."),
        ("it will not rain .", True, "It won't rain."),
        ("who is he ?", True, "Who's he?"),
        ("I know who he is .", True, "I know who he is."),
        ("Tom 's cat is big .", True, "Tom's cat is big."),
    ):
        words = [generate.TreeWord(word, "det" if word == "a" else "aux") for word in text.split()]
        assert generate.spell(words, short) == expected


def test_verb_forms():
    for irregular, expected in (
        ("", "walk walks walked walked walking"),
        ("", "live lives lived lived living"),
        ("", "study studies studied studied studying"),
        ("", "play plays played played playing"),
        ("", "wash washes washed washed washing"),
        ("went gone", "go goes went gone going"),
        ("saw seen", "see sees saw seen seeing"),
        ("lay lain", "lie lies lay lain lying"),
        ("stopped stopped stopping", "stop stops stopped stopped stopping"),
        ("had had", "have has had had having"),
    ):
        forms = lexicon.conjugate(f"{expected.split()[0]} up", irregular)
        assert " ".join(forms[name].removesuffix(" up") for name in ("base", "s", "past", "part", "ing")) == expected


def test_other_forms():
    plurals = "cat:cats box:boxes city:cities boy:boys church:churches cup of tea:cups of tea"
    for pair in re.findall(r"([a-z ]+):([a-z ]+?)(?= [a-z]+:| cup of|$)", plurals):
        assert lexicon.plural_of(pair[0].strip()) == pair[1]
    assert lexicon.compare("nice", "er") == {"er": "nicer", "est": "nicest"}
    assert lexicon.compare("happy", "er") == {"er": "happier", "est": "happiest"}
    assert lexicon.compare("big", "bigger biggest") == {"er": "bigger", "est": "biggest"}
    assert lexicon.compare("useful", "more") == {"er": "more useful", "est": "most useful"}


# ---- held out, refused


def test_held_out_apart(grammar, many):
    held = generate.sample(grammar, 100, seed=3, held_out=True)
    for s in many:
        assert grammar.held_out.isdisjoint({*s.rows, *(f"rule {rule}" for rule in s.rules)})
    for s in held:
        assert not grammar.held_out.isdisjoint({*s.rows, *(f"rule {rule}" for rule in s.rules)})


def test_held_out_share(grammar):
    rules = {rule.name for rule in grammar.rules}
    held = {name.removeprefix("rule ") for name in grammar.held_out if name.startswith("rule ")}
    assert 0.03 < len(held) / len(rules) < 0.08
    lemmas = [e.key for e in grammar.entries if e.part in {"noun", "verb", "adjective"}]
    assert 0.03 < (len(grammar.held_out) - len(held)) / len(lemmas) < 0.08


def test_held_out_words_stand_in_no_rule(grammar):
    literals = {item.text for rule in grammar.rules for side in rule.sides for item in side}
    entries = {entry.key: entry for entry in grammar.entries}
    for key in grammar.held_out & entries.keys():
        for forms in (entries[key].en, entries[key].zh):
            assert literals.isdisjoint(
                text for variants in forms.values() for text, _, label in variants[0] if label == "content"
            ), key


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "supplement"
    shutil.copytree(supplement.FOLDER, folder)
    return folder


def test_evaluated_sentences_are_refused(grammar, copy):
    before = generate.sample(grammar, 80, seed=5)
    judged = [before[0], before[10], before[11]]
    (copy / "judged").mkdir(exist_ok=True)
    (copy / "judged" / "new.tsv").write_text(
        "zh\ten\tscore\n" + "".join(f"{s.zh}\t{s.en}\t1\n" for s in judged), encoding="utf-8"
    )
    after = generate.load(copy / "grammar")
    drawn = generate.sample(after, 80, seed=5)
    for s in judged:
        content = grammar.refusals.content(s.en), grammar.refusals.content(s.zh)
        for t in drawn:
            assert plain(s.en) != plain(t.en)
            assert plain(s.zh) != plain(t.zh)
            assert not content[0] or after.refusals.content(t.en) != content[0]
            assert not content[1] or after.refusals.content(t.zh) != content[1]


def test_content_words(grammar):
    for one, other in (
        ("Tom ate an apple.", "Did you eat these two apples?"),
        ("She doesn't like the dog.", "They like dogs."),
        ("我昨天吃了一个苹果。", "他没吃苹果吗？"),
    ):
        assert grammar.refusals.content(one) - {"昨天"} == grammar.refusals.content(other) - {"昨天"} != frozenset()


def test_lists_that_evaluate_are_read(grammar):
    pairs = supplement.read_rows(supplement.FOLDER / "alignment.tsv", columns=4)
    for en, zh, *_ in pairs:
        assert grammar.refusals.refuse(en, "")
        assert grammar.refusals.refuse("", zh.replace(" ", ""))
    assert not grammar.refusals.refuse("Zebras juggle.", "斑马玩杂耍。")


# ---- bad input


def test_bad_rules():
    assert parse_rule("x.y|N=noun(food)|N*|好*|2".split("|")).name == "x.y"
    for row, message in (
        ("x.y||it:nsubj rains|下雨*|1", "needs one head"),
        ("x.y|N=noun(food)|it*|好*|2", "N is not declared, not used"),
        ("x.y||be@S*|好*|1", "S is not declared"),
        ("x.y|noun food|it*|好*|1", "food noun is not declared"),
        ("x.y||it*~|好*|1", "cannot be read"),
    ):
        with pytest.raises(DataError, match=message):
            pytest.fail(f"{row} is read as {parse_rule(row.split('|'))}")


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("nouns.tsv", "food\tblorp\t\t布洛\t个\tgadget\t\t", "nouns.tsv, blorp: 'gadget'"),
        ("held_out.tsv", "noun\tblorp 布洛", "noun blorp 布洛 is not in the grammar"),
        ("rules.tsv", "sentence.bad\tX=blorp()\tX*\tX*\t9", "A slot asks for blorp"),
    ],
)
def test_bad_files(copy, name, line, message):
    with (copy / "grammar" / name).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=re.escape(message)):
        generate.sample(generate.load(copy / "grammar"), 1, seed=0)


def test_command_line(grammar, capsys, monkeypatch):
    monkeypatch.setattr(generate, "load", {generate.FOLDER: grammar}.get)
    monkeypatch.setattr("sys.argv", ["grammar", "--n", "3", "--seed", "1"])
    generate.main()
    lines = capsys.readouterr().out.splitlines()
    assert [len(line.split("\t")) for line in lines] == [2, 2, 2]
    monkeypatch.setattr("sys.argv", ["grammar", "--n", "3", "--seed", "1", "--analysis"])
    generate.main()
    analyses = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [f"{a['en']}\t{a['zh']}" for a in analyses] == lines
