"""Names that a translator was never trained on."""

from tests.training.test_supplement import FOLDER
from visformer.model.decoding import Decoding
from visformer.training.evaluation.names import held_out_names, names_report


class Echo:
    """Translates nothing."""

    def translate_many(self, sources, *, to, batch):
        return [Decoding(source, (), (), (), 1.0) for source in sources]


def test_a_copy_of_the_source_has_most_names_to_copy_right_but_no_sentence():
    results = held_out_names(Echo(), FOLDER)
    assert len(results) == 50
    assert all(row.name and row.name in row.expected for row in results)
    assert all(not row.exact for row in results)
    copies = [row for row in results if row.kind == "copy"]
    assert sum(row.name_right for row in copies) >= len(copies) - 4  # "X University" is not a copy of "X大学"
    table = names_report(results)
    assert table["all"]["sentences"] == 50 == sum(table[kind]["sentences"] for kind in ("copy", "pinyin", "composed"))
    assert table["copy"]["name_right"] == sum(row.name_right for row in copies)
