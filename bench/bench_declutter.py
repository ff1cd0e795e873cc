"""How long simplifying takes: networks of about 2,000 nodes with symbolic sizes, as a frontend would wire them.

    python bench/bench_declutter.py            # a table
    python bench/bench_declutter.py --profile  # where the time goes, by function

Units: seconds, best of three. ``dims`` is the share spent in ``tract_core.dims``, from a separate, profiled run scaled
to the unprofiled one.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable

from tract_core.model.typed import TypedModel
from tract_core.rules import declutter_rules, declutter_with_report
from tract_core.testing.networks import convolutional, transformer


def measure(name: str, build: Callable[[], TypedModel]) -> None:
    declutter_rules()
    model = build()
    seconds: list[float] = []
    for _ in range(3):
        copy = model.clone()
        start = time.perf_counter()
        report = declutter_with_report(copy, check=False)
        seconds.append(time.perf_counter() - start)
    dims, total = profiled(model)
    print(
        f"{name:14} {len(model.nodes):6} {len(copy.nodes):6} {report.patches.total():8} {report.visits.total():7} "
        f"{min(seconds):8.3f} {min(seconds) * dims / total:8.3f}"
    )


def profiled(model: TypedModel) -> tuple[float, float]:
    copy = model.clone()
    profile = cProfile.Profile()
    profile.runcall(declutter_with_report, copy, check=False)
    stats = pstats.Stats(profile)
    if "--profile" in sys.argv:
        stats.sort_stats("tottime").print_stats(25)
    rows = stats.stats.items()  # type: ignore[attr-defined]: typeshed does not know it
    dims = sum(row[2] for (file, _, _), row in rows if "/dims/" in file)
    return dims, stats.total_tt  # type: ignore[attr-defined]: the same


def main() -> None:
    print(f"{'network':14} {'nodes':>6} {'after':>6} {'patches':>8} {'visits':>7} {'seconds':>8} {'dims':>8}")
    measure("transformer", lambda: transformer(15))
    measure("convolutional", lambda: convolutional(88))


if __name__ == "__main__":
    main()
