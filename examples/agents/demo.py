"""Watch moths that go after lamps in the dark: three brains, a budget of time, and a policy that is swapped in flight.

``make agents`` sets everything up and runs this. Ctrl-C ends it. In a pipe, or with ``--headless``, it draws nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from shutil import get_terminal_size
from statistics import fmean, median

from night import Brood, Night, Step, brain, policy
from screen import PLAIN, Canvas, colour

RATE = 25
"""Steps in a second, when they are drawn."""
WINDOW, SETTLING = 50, 75
"""Steps that what is shown is the mean of, and those at the begin of an act that its score leaves out."""
COLOURS = {"moths": 81, "forgetful": 203, "owls": 156}
BRIGHT, DIM, GREY = 227, 240, 245
OTHER_PAGE, FIRST_PAGE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""A page of the terminal without a cursor, and the one from before."""
HOME, REST = "\x1b[H", "\x1b[K\x1b[J"
"""To the top left corner; and leave nothing behind what was written."""


@dataclass(frozen=True)
class Act:
    """A part of the play. ``share``: of the time that the brains took before, where it is scarce."""

    name: str
    says: str
    steps: int
    share: float | None = None


PLAY = (
    Act("early", "the moths have the policy of generation 20: what is a lamp?", 150),
    Act("trained", "the trained policy took over, under the same moths. The forgetful have it too", 275),
    Act("scarce", "the brains get half of the time that they need, and take turns", 150, share=0.5),
    Act("enough", "there is enough time again", 125),
)


class Play:
    """The night, act after act, and what came of it. ``scores``: of each brood, by act: its share in the light.

    ``budget``: seconds of a step that all brains get together, where there is enough.
    """

    def __init__(self, budget: float) -> None:
        self.trained = policy("trained")
        moths = Brood("moths", brain(policy("early")), 300)
        forgetful = Brood("forgetful", brain(self.trained, forgetful=True), 100, begins=False)
        owls = Brood("owls", brain(policy("owls")), 60)
        self.night = Night([moths, forgetful, owls])
        self.broods = list(self.night.broods.items())
        self.enough = self.budget = budget
        self.says = ""
        self.scores = dict[str, dict[str, float]]()
        self.lights: dict[str, list[float]] = {}
        self.steps = list[Step]()

    def act(self, act: Act) -> Iterator[None]:
        """Every step of an act."""
        if act.name == "trained":
            number, _ = self.broods[0]
            self.night.runtime.replace_inferer(number, self.trained)
        self.says = act.says
        self.budget = self.enough if act.share is None else act.share * median(step.took for step in self.steps)
        self.lights = {brood.name: [] for _, brood in self.broods}
        for _ in range(act.steps):
            self.steps = [*self.steps[1 - WINDOW :], self.night.step(self.budget)]
            for _, brood in self.broods:
                self.lights[brood.name].append(brood.in_light(self.night.lamps))
            yield
        self.scores[act.name] = {name: fmean(light[SETTLING:]) for name, light in self.lights.items()}

    def report(self) -> list[str]:
        """What there is to say, in lines of at most 80 characters: of all, and of each brood."""
        span = self.steps[-1].start - self.steps[0].start
        rate = sum(len(ids) for step in self.steps[:-1] for ids in step.decided.values()) / span if span else 0.0
        agents = sum(len(brood.ids) for _, brood in self.broods)
        took = fmean(step.took for step in self.steps)
        return [
            f"{agents} agents, {rate:,.0f} decisions/s, {took * 1e3:.2f} of {self.budget * 1e3:.2f} ms a step",
            *(self._line(number, brood) for number, brood in self.broods),
        ]

    def _line(self, number: int, brood: Brood) -> str:
        stats, light = self.night.runtime.stats(number), fmean(self.lights[brood.name][-WINDOW:])
        asked = fmean(number in step.decided for step in self.steps)
        counts = f"{brood.name:<9} {len(brood.ids):>4}   in the light {light:4.0%}   asked {asked:4.0%}"
        return f"{counts}   p50 {stats.p50 * 1e3:5.2f} ms   p99 {stats.p99 * 1e3:5.2f} ms"


def picture(play: Play, columns: int, rows: int) -> list[str]:
    """The arena, with what there is to say below it, for a terminal of so many columns and rows."""
    report = play.report()
    canvas = Canvas(columns, max(rows - len(report) - 1, 4))
    for place, lit in zip(play.night.lamps.place, play.night.lamps.lit, strict=True):
        canvas.circle(place, BRIGHT if lit else DIM)
        canvas.sign(place, "●" if lit else "○", BRIGHT if lit else DIM)
    for _, brood in play.broods:
        canvas.dots(brood.moths.place, COLOURS[brood.name])
    colours = [BRIGHT, GREY, *(COLOURS[brood.name] for _, brood in play.broods)]
    below = zip(colours, [play.says, *report], strict=True)
    return [*canvas.lines(), *(colour(code) + line[:columns] + PLAIN for code, line in below)]


def watch(play: Play) -> None:
    """Draw the play at its own pace; where a step comes late, it is not drawn."""
    out, due = sys.stdout, time.perf_counter()
    out.write(OTHER_PAGE)
    try:
        for _ in (step for act in PLAY for step in play.act(act)):
            due += 1 / RATE
            if due > time.perf_counter():
                columns, rows = get_terminal_size()
                out.write(HOME + "\x1b[K\r\n".join(picture(play, columns, rows)) + REST)
                out.flush()
            time.sleep(max(due - time.perf_counter(), 0))
    finally:
        out.write(FIRST_PAGE)
        out.flush()


def tell(play: Play) -> None:
    """Say how each act went."""
    for act in PLAY:
        for _ in play.act(act):
            pass
        print("\n  ".join([play.says, *play.report()]))


def verdict(scores: dict[str, dict[str, float]]) -> bool:
    """Say whether the moths have learned something, and whether they need their memory for it."""
    early, trained, forgetful = scores["early"]["moths"], scores["trained"]["moths"], scores["trained"]["forgetful"]
    print(f"in the light of their lamps are {early:.0%} of the moths with the early policy,", end=" ")
    print(f"{trained:.0%} with the trained one, {forgetful:.0%} with that and without memory")
    return trained > early + 0.2 and trained > forgetful + 0.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headless", action="store_true", help="draw nothing, and do not wait for the clock")
    headless = parser.parse_args().headless or not sys.stdout.isatty()
    play = Play(1.0 if headless else 0.5 / RATE)
    try:
        (tell if headless else watch)(play)
    except KeyboardInterrupt:
        return 130
    return 0 if verdict(play.scores) else 1


if __name__ == "__main__":
    raise SystemExit(main())
