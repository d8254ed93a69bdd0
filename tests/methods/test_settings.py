"""One settings class for each method: the constructor, the policy table and snapshots agree with it."""

from __future__ import annotations

import copy
import inspect
import json
import pickle

import pytest

from shoal.methods.registry import METHODS
from shoal.methods.settings import Duration
from shoal.policy.methods import section_for

BESIDES = {"schema", "ontology", "person", "time", "carry", "generalize", "error", "key"}
"""Arguments that are columns, objects or secrets: [stream] and tables of their own say them in a policy."""


@pytest.mark.parametrize("name", METHODS)
def test_constructor_and_policy_take_what_the_settings_class_describes(name):
    method = METHODS[name].load()
    settings, section = method.settings_class.model_fields, section_for(name)
    arguments = inspect.signature(method).parameters
    assert set(arguments) - BESIDES == set(settings)
    assert set(settings) <= set(section.model_fields)
    for key, field in settings.items():
        given, default = arguments[key].default, field.get_default(call_default_factory=True)
        assert field.description, key
        if given not in (inspect.Parameter.empty, None):
            assert given == getattr(default, "given", default), key
    assert issubclass(section, method.settings_class)
    assert section.METHOD == method.method == name


def test_a_duration_is_its_nanoseconds_and_keeps_how_it_was_written():
    duration = Duration("90s")
    assert (duration, duration.ns, duration.given) == (90 * 10**9, 90 * 10**9, "90s")
    for again in (copy.deepcopy(duration), pickle.loads(pickle.dumps(duration))):
        assert (again, again.given) == (duration, "90s")
    assert json.dumps(duration) == str(90 * 10**9)
