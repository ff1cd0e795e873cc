"""Tables of groups of numbers: what codes of IQ1, IQ2 and IQ3 stand for, as ggml's ``ggml-common.h`` lists them.

A table has one row for each code, of 8 numbers or 4. Each of them is one of a few levels, so a row is an integer of up
to 16 bits: which level each number is, from the lowest bits on. These integers grow from row to row. Kept here are
their differences, as integers of 16 bits that zlib compressed, in base64.
"""

from __future__ import annotations

import zlib
from binascii import a2b_base64
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from tract_core.data.stored import Array


class _Kept(NamedTuple):
    """``length``: numbers of a row; ``bits``: of the place of each among ``levels``."""

    length: int
    bits: int
    levels: tuple[int, ...]
    text: str


@cache
def grid(name: str) -> Array:
    """The table of a format [codes, numbers of a row], of i8, read-only. ``name``: one of `NAMES`."""
    kept = _KEPT[name]
    steps = np.frombuffer(zlib.decompress(a2b_base64(kept.text)), "<u2")
    rows = np.cumsum(steps, dtype=np.uint16)
    places = rows[:, None] >> kept.bits * np.arange(kept.length, dtype=np.uint16) & (1 << kept.bits) - 1
    found = np.array(kept.levels, np.int8)[places]
    found.flags.writeable = False
    return found


_IQ1: Final = (
    "eNqNV41u4zYMFmUpdmpff7B1ThNf0wId2u0Oe53emgA9YIfu1q3YM+zNxz/Rkp3shiKNLVEU+ZH8yDjnXYV/3tUuuBa/F/jZuI7XzvBJVlrbe3Kg"
    "uxU+tW5wEZ+W+Imog9a9e2/nd7PzpLvBt+h6XaGbA/6Xt99BTg4o1aHUCd7ykZ/3fCPgnkj0uBvxDOh6xTrEm96do07xK+3+idIP+N2pVIOrZPvA"
    "1ka8+ZCt8SAKOz3Too4BJQBvk5UHxaY76nuDshuzdNx9iZDprPhuQZa0P6h0YBx85q1gPygWgKsJjei27pQ1Ve7NIrrQM/R+gp+tRWsPdGOriDZ4"
    "foP3Acd0xFHODhzvYOjXauevlgnzmMham9kImWTP9wDL5lEFRqfK4p8sim6dnanVVrK8svMDrtL7GUp/hciZlfCL2V3eMuECM8WrFwFz2ZvXoz2R"
    "sW34nfZI02f3DtH27noSnZRjEbW9xDwnBJcyK6a7KdM6tiRqrBJqW5RccIT3fOO0iiPvDbO9HZxplm6LqHpekRvJoi/4TNb1RS6K7K3F32vlU4xa"
    "fuu0fluOxoYz7cS9HKwwQjx5/oN+P3PMyNtbvbezGInHpHk3OTV6fKBiL6WW78xTsfkX9jQyr8kN4mXKsErzpc7i31o+SwWJNeB+s0oa0KeK2Su6"
    "G9y9wNr6HtE6n2hrNYO8IlybtsZ9cjCrpci8Ob6nLB+znlauDuSs2PzIXNtmURMeTnwIWjmC0RXKCgOLX8/Q8UqLuVgrOsuidrzmYuA8WWh+iMya"
    "ra8LhvKaUUOGe9L4hrHxFnlC8gPhGHMeiuZDLPylM9f6nXh+XzCVWEE+SKxLVJONvjhBiIjOPB6PWpViy/UkZmTTjdYzoXHiPgOYDolbKPhRGCaP"
    "LBSo9Xgiz0eJO9mRIwtHWbb0bu7t9O5eYzTdGfPtUdf8hH2nulfG0FD0Kl90kCvNA1kLXJ9pZQcj8oTtEis9ryfxSOyQHE0sfKieOs67b0d9xVXT"
    "ZHd0yFAB+T5yLwBlCYmlSCytrpdmP9n5JY7M21n2Jf5cuUvqwxkTdYxJpX0sqN20tsa7G5sTvvL/e84E6ZCN+1Hnl78AFFvBrc+mvmmX3aqcNywS"
    "T+yzLlthLU45qMoy4r3GP9gsIQg8cW9o+S7Qqs2j5xlPwsErf3qNacDvgJ5I1C40kg3zTo19d6dIJBbqNWd9xgpSryu+pdUaDIycdz+pxqhsA9z7"
    "T/nezj1dTjtNa/2iOzofesuxaFznmYu9RrQ9Oivea/+b634FmTLfcW1IbD7QdINoLPVU8n/aA0auy2eUU56NR1tlwgnKj4H76hIx2c/6d29zL3WG"
    "/gAOqfPkc5e3OrzlSB6blUn+57nO2HHEgO2N1iEo6zdFFyrnvNoyI9qMmxh6y1Gusn62N7+2E6wqnvi9+859gtSZaH2NTyUPiX7RnTpyw/1iOuM2"
    "zDDwP7vQSiObM/zCavpRK4GqeJExU+rt5NeaZ0ngTgJOGGkPF5oDUacayiCqhBubq54LLMbZeX2AUdK02NtvLqmvZ5yCzg1V4fE764iv8VgmELvN"
    "80t4Waz9qEgmO25Zjt7/YOkFd4xvTYp/Q6e/v8Lsl8Xg/pnkQjkRdMV8Jj3gzaIR2OtgbEjo33H+JPZEhoSSae7/w/czndIHfkrsdY+7r+6Qlnkt"
    "/Qtzf1EF"
)

_IQ2_XXS: Final = (
    "eNpNkc0rRGEUxn/vHe8Y3800ZkaR6yMpFnfDTJKakkTZSFkow0psJIqampI/YkoxSSkplIUSC1K29la2UsrCRvHcO1fpds+555znPOc554JDRI9D"
    "rWyjfFRvOviOUSffrjhGhsUgZxlgnCQryroUKBk/Gw9xUeG6AlyShTDuo0d8cbY1wVOvy4KxIaYtnDlMkVHuSfBuq3ydwvUG89aC6R71YjoW+43x"
    "Y6tqljJTHJDiLVDhkaekyj6XnFtf9QgdYnI4kb2W/wlxKU6F7WHQbJsMm1yY29b/G8do1rzqJutSkle/lcYWcqokKAcaCtK/o+gF41R5LTfMi6OL"
    "B6ZZtz5fTHsXZIuMscy7NDi6xReznJm48tPqf+Lb+v392mhOvZNUdKMGITe4c+7S/i5ZqdjVzfp55sP8/QuXChPMsKW6y5FxTJP5tP5t21lSdpVH"
    "XaybbpqMFznkNTrDEHuan3FyNVf8AqMtPnA="
)

_IQ2_XS: Final = (
    "eNp9ksFLVGEUxX/fG569ZJgaGceMMZ8mgxHFw8FFbSQTUiQXgY0j6jgutIgkCpyIWeS+dRBCiC1ahrsgCFetWtSf4Npdy3Dh+b55UzPDjAzvzb33"
    "3Xvuuede8Ejo53HBvRP6r0cG2/yLenJNtq8vlbacOkpzVpLAISV50RIdcW+fm/RSNed38pQz0hUjzTC7zspyVd+nqZlmNrZLLmYyTiisovMi7ilS"
    "VSRgW9GKfz6LpHIGurKIyCj6LGYbCXXftGdZxTLC3I0rjuRN8tVYz+O2vAneKKvCCUsU/dYpGn1Cp7q1AobYY5Q1zVVyKINieKS50jzgibx3LJtA"
    "CFn1KUidH8p8zRU26FG02t994nbtOs/si0GZOv8B29u03sd/bZ47y06/zKYUuivv0DRQLpHio1gX3Ax7nPqdLiiKlbNX4/GdGSEVTeMGQnULxSbQ"
    "hAEfpMAdyibDLaHPqTKvmvum5jcYpRjjum5hzOSZZdtk+eu4lFn1nvKNYxYsq/5OFxAJy+IV/+07rZ6f1X9d/jXZpXirCXENuaE7m9HeXvGI98bu"
    "bdLV57W7nFlTfoo+SjG3rG6hpr1O80eKVI3PlFPhN1uq+cJlb5FP/GSefenU4/bbyw6HynkofW1slMfuBhf5ZQq81HQ2apVZ4a3sAz1b0vUMx8dL"
    "Cw=="
)

_IQ2_S: Final = (
    "eNqdVc9rE0EU/qZlGjMMDR66dmNI/FFFKoVgQaqIBw9C8FaQtFJY9SAVbclFCqWXCP4H0lvPBW968yDkT/PLzGwys7uzxrLMzM7bN9+8970fCyxh"
    "mc8SGmZe5molaWHfdPsb3l5D8hlWaHYKpxrUs5ja7DXHQYCkiDzXfWiQFVaRiXo7ipZ3ghub3j2+pox42AlselewKJffNvNIlH2Unhc+qkQLiWFK"
    "z+S9ALGFEa7zfRUr1LiPAQ5lleftErN+vFSt1/HI+n4fcUjjjXa2T9etqM//x2RMw3FaYrmPTQxFGNNe6eRZBVaKJ3hvEBL8kLFY2Xi0aI3i48dI"
    "u3t0YJ/CuolQm7sdrl3si2LGLeZZQoyx8zHFpfB5fopbzpJv+MIbX2CDmCdrIYt5bNs1taBLGdGM1Etd7PKs1SYfAubFVfNskaxQLkajCkb7uIcD"
    "YXM1dn4jejbBJ/c2kXUVVV8nV8vplF6NxaKnq6wfzzJoIsrfFftHnlkT3vYZd7EvbX8Iu9K/eUrJk+XrFXuxjFjSJ3KXlXqM7zgSU8lrbOOQknWR"
    "IVubI9vO0il1Qu11nmpGthx3Q1O7jZnkZ4nJ3sI8KpzMIjIJKnAXGddnzLE/eMyzD1iRmfTt09Foz1EULt1NH/BG1OfhHr9keEkeL0Qe3Y/0dkD5"
    "czGS+R/xmquJXb6d074LrrYn7ZnZdqQp4gA3WfUpdsRv0cUpfuERvlIj4VjBW9zBXxjUTgg="
)

_IQ3_XXS: Final = (
    "eNpNkF1Pg0AQRS8g39AiFKnB1tbapBoToz77pr41/v9/45kpIYbsLjtz5s6dlUK+mHWlgD1Vrlu/XaIpf5GfpSplE516xKhCiRaciVeXOqjTCsLo"
    "0OOdGn1oIGqaPXQza19Oqwu09ojFXud8qgcUQmpy1dSVaBx0Ym/RrXQms/unZF5z3btmNCmMPlnmt4vLmr3Gj832wtqjsuZewH67m0F384w9bDy7"
    "KDlH71aTabTEySd7B5HgaKR7S+bEWkEvYCt6nLkt6dtAXWsLdSRrnXtykau/03fAaQI1QNhsmZ60mebOiP7i2MjGKzYQW5QeqflB7ag3OlveXiDA"
    "SQNf6BlfsW7wbP32RO2NWn3pD/JpD5k="
)

_IQ3_S: Final = (
    "eNpVU2tPwzAMdNo82iZdV7bBxkACDWmC7xP//59xvjjTUJXEdvw4X1wRh6+XjqfD2VH2EiVA6s2icoLW3/08vdTiqSWZsQfEOVoc73r6aLaWaYY0"
    "QPe0JNaIjJiZp5dMTa2R+yIT9MLbYL4LpMwMG1mhJeZuPopk/4CzdVV70BjNPxJr7VGjEqsl3kfsk/HiDcnE1Vio+BwjV0jZWJpZpXJyeMi5yJXd"
    "6f35zmiBTaOHfyi7OypnHFV9trfSFY3bumuNI7WJuRPxe2KubHr026pGdJixj7An3p0oBVi0RsY+0HuSN3LpiTvD8mp4Oka02ehZLzKqYyZFuyWG"
    "elPf8ERugvU28lQ0A+dNp2jlC8/MnYlggrbD92HsZrnYm9T+Ez6tFKx25JRE4lZ0gTwEvIDyVOgX7JUuOJ+Q0QFZIdJPSCsij5wwZenEXIqy1iv2"
    "b1SeR+BSJidWneUFp0OtGWexySm4LfKFtUPULzvZ4GwzewD+LXK9yzPQRPatXBaivsF3weqBZA/fs3wj5kY0o2XQSpohw7PDm7V/Tvk8cTI2yF3/"
    "6qP8wPcDSK/yB74/D8E="
)

_OF_IQ2: Final = (8, 25, 43)

_KEPT: Final[Mapping[str, _Kept]] = {
    "iq1": _Kept(8, 2, (-1, 0, 1), _IQ1),
    "iq2_xxs": _Kept(8, 2, _OF_IQ2, _IQ2_XXS),
    "iq2_xs": _Kept(8, 2, _OF_IQ2, _IQ2_XS),
    "iq2_s": _Kept(8, 2, _OF_IQ2, _IQ2_S),
    "iq3_xxs": _Kept(4, 3, (4, 12, 20, 28, 36, 44, 52, 62), _IQ3_XXS),
    "iq3_s": _Kept(4, 3, (1, 3, 5, 7, 9, 11, 13, 15), _IQ3_S),
}

NAMES: Final = tuple(_KEPT)
"""By the formats; `IQ1_S` and `IQ1_M` have the same one."""
