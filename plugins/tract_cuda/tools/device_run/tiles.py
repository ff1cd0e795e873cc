"""Which tiles compute the products of networks best: `tune_products.py`, with what it finds kept product by product."""

from __future__ import annotations

from functools import partial
from typing import Any

import tune_products
from tract_cuda.products.measured import key_of
from tract_cuda.products.product import Product

from device_run import networks
from device_run.setting import Setting

TABLE = "measured.json"
"""What is written beside the report, to take the place of `tract_cuda/products/measured.json`."""

_LEAST_SECONDS = 5


def run(setting: Setting) -> None:
    """A row for each product of the networks; then the table."""
    if setting.small:
        tune_products.REPEATS = tune_products.ROUNDS = 1
    bench = tune_products.Bench(setting.device, setting.target)
    for name in networks.names(setting):
        for batch in (1,) if setting.small else (1, 32):
            if batch > 1 and name in networks.ONE_ROW:
                continue
            for precision in ("f32",) if setting.small else ("f32", "f16"):
                if setting.left < _LEAST_SECONDS:
                    break
                _tune(setting, bench, name, batch, precision)
                _write(setting)


def _tune(setting: Setting, bench: tune_products.Bench, name: str, batch: int, precision: str) -> None:
    try:
        model = networks.typed(networks.network(name, setting.small, batch), precision).typed
        every = {key_of(one): one for one in tune_products.products_of(model, setting.target)}
    except Exception as error:  # one network less
        setting.attempt(f"products of {name}, batch {batch}, {precision}", partial(_raise, error))
        return
    new = {f"{key}": product for key, product in every.items() if key not in setting.rows}
    if not setting.virtual:
        tune_products.prepare(setting.target, list(new.values()))
    for key, product in list(new.items())[: 1 if setting.small else None]:
        if setting.left < _LEAST_SECONDS:
            return
        setting.attempt(key, partial(_best, setting, bench, product))


def _raise(error: Exception) -> dict[str, Any]:
    raise error


def _best(setting: Setting, bench: tune_products.Bench, product: Product) -> dict[str, Any]:
    found, report = tune_products.tune(bench, product, 2 if setting.small else None)
    return {"not measured": "virtual"} if setting.virtual else {"tile": found, "report": report}


def _write(setting: Setting) -> None:
    found = {key: row["tile"] for key, row in setting.rows.items() if "tile" in row}
    if found:
        tune_products.written(tune_products.merged(found, setting.target.arch), setting.folder / TABLE)
