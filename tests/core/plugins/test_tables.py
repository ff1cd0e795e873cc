"""Tables: rows by operator type or name."""

from __future__ import annotations

import pytest

from tract_core.errors import RegistrationError, Unsupported
from tract_core.plugins.tables import Row, Rows, Table, TableKey, function_row, key_text

SOUNDS: TableKey[type, str] = TableKey("sounds", "the sound that it makes")


class Animal: ...


class Dog(Animal): ...


class Cat(Animal): ...


def table(*rows: tuple[object, str]) -> Table[type, str]:
    filled = Table(SOUNDS)
    for key, sound in rows:
        assert filled.add(Row("sounds", key_text(key), sound), "zoo") is None
    return filled


def test_the_row_of_the_nearest_base_is_taken():
    sounds = table((Animal, "?"), (Dog, "woof"))
    assert (sounds[Dog], sounds[Cat]) == ("woof", "?")
    assert Cat in sounds
    assert int not in sounds


def test_a_new_row_is_seen_after_a_question():
    sounds = table((Animal, "?"))
    assert sounds[Cat] == "?"
    sounds.add(Row("sounds", key_text(Cat), "meow"), "zoo")
    assert sounds[Cat] == "meow"


def test_a_type_and_its_text_are_the_same_key():
    sounds = table((f"{__name__}:Dog", "woof"))
    assert sounds[Dog] == sounds.rows()[key_text(Dog)] == "woof"
    assert sounds.owner(Dog) == sounds.owner(key_text(Dog)) == "zoo"


def test_a_missing_row_lists_what_there_is():
    with pytest.raises(Unsupported, match="table 'sounds' has no row for int; it has: Cat, Dog"):
        table((Dog, "woof"), (Cat, "meow"))[int]
    with pytest.raises(Unsupported, match="it has: none"):
        table()[int]


def test_a_key_that_is_taken_stays_with_who_was_first():
    sounds = table((Dog, "woof"))
    assert sounds.add(Row("sounds", key_text(Dog), "wuff"), "farm") == "zoo"
    assert sounds.add(Row("sounds", "cow", "moo"), "farm") is None
    assert (sounds[Dog], sounds["cow"]) == ("woof", "moo")
    assert (sounds.owner(Dog), sounds.owner("cow")) == ("zoo", "farm")


def test_the_owner_is_told_of_what_a_look_up_gives():
    sounds = table((Animal, "?"))
    assert sounds.owner(Cat) == "zoo"
    assert sounds.owner("cow") is None


def test_rows_about_one_subject_come_from_one_distribution():
    versions = Table(TableKey("versions", "a version", subject=lambda key: key.partition("/")[0]))
    assert versions.add(Row("versions", "relu/1", "old"), "standard") is None
    assert versions.add(Row("versions", "relu/6", "new"), "standard") is None
    assert versions.add(Row("versions", "relu/3", "mine"), "newcomer") == "standard"
    assert versions.add(Row("versions", "gelu/3", "mine"), "newcomer") is None


def test_a_row_that_does_not_fit_says_what_a_row_is():
    functions = Table(TableKey("functions", "what it computes", function_row))
    with pytest.raises(RegistrationError, match="the row of zoo for dog is a str, wanted a function") as caught:
        functions.check([Row("functions", "dog", "woof")], "zoo")
    assert caught.value.hint == "a row says what it computes"


def test_rows_keep_their_order():
    rows = Rows()

    @rows.row(SOUNDS, Dog, Cat)
    def noise() -> None: ...

    rows.add(SOUNDS, "cow", "moo")
    assert [row.key for row in rows] == [key_text(Dog), key_text(Cat), "cow"]
    assert [row.value for row in rows] == [noise, noise, "moo"]
    assert len(rows) == 3
