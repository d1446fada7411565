"""The schema for editors accepts every example and refuses what the reader refuses for its form."""

import json
import pathlib
import tomllib

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/horolog-system.schema.json").read_text())
EXAMPLES = sorted((ROOT / "examples").glob("*/system.toml"))

# Broken in their form; the other broken examples break rules that a schema cannot tell (sums, names, cycles).
BROKEN_IN_FORM = ["unknown-key", "missing-unit", "many", "single-brackets", "misplaced-key", "segments", "body", "server"]
BROKEN_IN_FORM += ["scheduler-keys", "mode-keys"]


def errors(path: pathlib.Path) -> list[str]:
    validator = jsonschema.Draft7Validator(SCHEMA)
    return [error.message for error in validator.iter_errors(tomllib.loads(path.read_text()))]


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_validates(path: pathlib.Path) -> None:
    assert errors(path) == []


@pytest.mark.parametrize("name", BROKEN_IN_FORM)
def test_a_broken_form_is_refused(name: str) -> None:
    assert errors(ROOT / "examples/broken" / f"{name}.toml")
