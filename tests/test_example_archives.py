"""The operator of the example plugin in NNEF archives."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_environment import Environment, smooth_file


@pytest.fixture(scope="module")
def model(environment: Environment) -> Path:
    return smooth_file(environment.folder)


def test_its_operator_survives_a_round_trip(environment, model):
    found = environment.code(
        """
        import sys
        import tract_core as tract
        from tract_core.model.same import same_model

        model = tract.load(sys.argv[1])
        nnef = tract.nnef().with_registry("com_example")
        nnef.write_model_to_dir(model, "smooth")
        tract.nnef().write_model_to_tar(model, "fields.tar")  # in the registry of the project, by its fields
        print(open("smooth/graph.nnef").read())
        for path in ("smooth", "fields.tar"):
            print(same_model(nnef.load(path).typed, model.typed))
        """,
        model,
    )
    assert "extension tract_registry com_example;" in found
    assert "com_example_smooth(" in found
    assert found.splitlines()[-2:] == ["True", "True"]


def test_the_command_writes_it(environment, model):
    allowed = ["--nnef-registry", "com_example"]
    environment.tract(model, *allowed, "dump", "--nnef-tar", "smooth.tar")
    assert "com_example_smooth(" in environment.tract("smooth.tar", *allowed, "dump", "--nnef-graph", "-")
    strict = environment.run("-m", "tract_core", model, "--no-nnef-tract-core", "dump", "--nnef", "s.tgz", status=1)
    assert "cannot be written" in strict.stderr
