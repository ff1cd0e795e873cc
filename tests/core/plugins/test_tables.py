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
    filled.insert([Row("sounds", key_text(key), sound) for key, sound in rows], "zoo")
    return filled


def test_the_row_of_the_nearest_base_is_taken():
    sounds = table((Animal, "?"), (Dog, "woof"))
    assert (sounds[Dog], sounds[Cat]) == ("woof", "?")
    assert Cat in sounds
    assert int not in sounds


def test_a_new_row_is_seen_after_a_question():
    sounds = table((Animal, "?"))
    assert sounds[Cat] == "?"
    sounds.insert([Row("sounds", key_text(Cat), "meow")], "zoo")
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


def test_a_taken_key_names_both():
    with pytest.raises(RegistrationError, match=r"both zoo and farm have a row for .*:Dog"):
        table((Dog, "woof")).insert([Row("sounds", key_text(Dog), "wuff")], "farm")


def test_one_refused_row_refuses_all():
    sounds = table((Dog, "woof"))
    with pytest.raises(RegistrationError):
        sounds.insert([Row("sounds", "cow", "moo"), Row("sounds", key_text(Dog), "wuff")], "farm")
    assert "cow" not in sounds
    assert len(sounds) == 1


def test_a_row_that_does_not_fit_says_what_a_row_is():
    functions = Table(TableKey("functions", "what it computes", function_row))
    with pytest.raises(RegistrationError, match="the row of zoo for dog is a str, wanted a function") as caught:
        functions.insert([Row("functions", "dog", "woof")], "zoo")
    assert caught.value.hint == "a row says what it computes"


def test_rows_keep_their_order():
    rows = Rows()

    @rows.row(SOUNDS, Dog, Cat)
    def noise() -> None: ...

    rows.add(SOUNDS, "cow", "moo")
    assert [row.key for row in rows] == [key_text(Dog), key_text(Cat), "cow"]
    assert [row.value for row in rows] == [noise, noise, "moo"]
    assert len(rows) == 3
