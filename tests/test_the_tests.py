"""Rules for kernels and tests that no single test can check: what kernels may do, and that tests check something."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import shoal.kernels
from tests.mutants.planted import MUTANTS

FOLDER = Path(shoal.kernels.__file__).parent
KERNELS = sorted(FOLDER.rglob("*.py"))
TESTS = Path(__file__).resolve().parent
ALLOWED = {"__future__", "typing", "numpy", "numba"}
DECORATORS = {"kernel", "inlined", "piece"}
FORBIDDEN_SETTINGS = {"fastmath", "parallel", "forceobj", "object_mode"}
FORBIDDEN_CALLS = {"print", "open", "empty", "zeros", "ones", "full", "array", "append", "random"}
FORBIDDEN_STATEMENTS = (ast.Raise, ast.Try, ast.With, ast.Global, ast.Assert)

COMPILING = FOLDER / "compiling.py"
TOOLS = (
    COMPILING,
    FOLDER / "bundles.py",
    FOLDER / "notice.py",
    FOLDER / "source_stamp.py",
    FOLDER / "siphash_lanes.py",
    FOLDER / "instructions.py",
)
"""What kernels are built with; not kernels themselves."""
SOURCES = {path: ast.parse(path.read_text()) for path in KERNELS if path not in TOOLS}
FUNCTIONS = {
    f"{path.relative_to(FOLDER)}: {node.name}": node
    for path, tree in SOURCES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.FunctionDef)
}
NAMES = {node.name for node in FUNCTIONS.values()}


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


def njit_settings(tree):
    """Keywords of every call of njit in a piece of code."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "njit"]
    return [{word.arg: getattr(word.value, "value", None) for word in call.keywords} for call in calls]


def are_sound(settings):
    """Whether a kernel with a Python entry is cached, and a piece without one is not."""
    is_cached_once = settings.get("no_cpython_wrapper", False) != settings.get("cache", False)
    return is_cached_once and not FORBIDDEN_SETTINGS & set(settings)


def is_compiled(node):
    if len(node.decorator_list) != 1:
        return False
    if getattr(node.decorator_list[0], "id", "") in DECORATORS:
        return True
    found = njit_settings(node.decorator_list[0])
    return len(found) == 1 and are_sound(found[0])


def is_forbidden(node):
    if isinstance(node, FORBIDDEN_STATEMENTS):
        return True
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and node.func.id in NAMES:
        return False  # another kernel
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called in FORBIDDEN_CALLS


def test_there_are_kernels():
    assert len(FUNCTIONS) > 300


def test_every_kernel_is_compiled_and_cached():
    assert [name for name, node in FUNCTIONS.items() if not is_compiled(node)] == []


def test_the_decorators_compile_and_cache():
    tree = ast.parse(COMPILING.read_text())
    assert {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} > DECORATORS
    found = njit_settings(tree)
    assert len(found) == len(DECORATORS)
    assert all(are_sound(settings) for settings in found)


def test_every_kernel_has_a_docstring():
    assert [name for name, node in FUNCTIONS.items() if not ast.get_docstring(node)] == []


def test_no_kernel_raises_prints_or_allocates():
    assert [name for name, node in FUNCTIONS.items() if any(map(is_forbidden, ast.walk(node)))] == []


COVERED = {
    ("run_least_loss", "methods/tuples/test_lanes.py", "LanesOf"): {"pass_other_lanes"},
    ("run_least_loss", "methods/tuples/test_least_loss_twin.py", "LeastLossTwin"): {"decide_least"},
    ("run_least_loss", "methods/tuples/test_least_loss_flush.py", "LeastLossTwin"): {
        "exchange_for_diversity", "helping_pair", "least_tried", "rows_within_share", "tries_again",
    },
    ("form_least", "kernels/tuples/test_least_loss.py", "form_least"): {"add_further_tuples", "choose_members"},
    ("judge_combinations", "kernels/sets/test_kernels.py", "by_bitmaps"): {
        "enter_prefix", "judge_block", "judge_combinations",
    },
    ("tally_combinations", "spark/sets/test_parts.py", "DividedCounting"): {
        "begin_combination", "next_combination", "number_of", "tally_combinations",
    },
    ("list_combinations", "spark/sets/test_parts.py", "DividedCounting"): {"list_combinations"},
    ("count_supports", "spark/sets/test_parts.py", "DividedSupports"): {"count_supports"},
    ("propose_places", "spark/sets/test_parts.py", "DividedSupports"): {"propose_places"},
    ("sort_rows", "kernels/flexible/test_kernels.py", "sort_rows"): {"_merge"},
    ("form_groups", "methods/flexible/test_twin.py", "NaiveFlexible"): {
        "_add_block", "_add_level", "_add_parts", "_add_published", "_add_tuple", "_add_whole", "_assign_anew",
        "_block_bound", "_bucket_of", "_can_divide", "_choose_labels", "_close", "_could_fill", "_count_labels",
        "_count_row", "_crowd_of", "_fill_queue", "_give_way", "_has_depths", "_has_more", "_is_better",
        "_is_new", "_is_postponed", "_is_single", "_is_touched", "_keep_filled", "_note_finest", "_other_tuple",
        "_pending_in", "_place", "_place_in", "_pop", "_publish_block", "_push", "_push_tuples",
        "_push_unpriced", "_rate_block", "_record_labels", "_rescue", "_same_before", "_slot_of",
        "_take_widest", "_tuple_bound", "_write_rows", "find_blocks", "find_tuples", "form_groups",
        "give_slots", "list_tuples", "open_tuple", "take_key",
    },
    ("decide_strictly", "kernels/z/test_label_crowd.py", "decide_paths"): {
        "add_exposure", "count_person", "decide_strictly", "discount_person", "drop_oldest", "expire_labels",
        "find_node", "find_pair", "find_slot", "forget_nodes", "forget_pair", "free_row", "has_room_for",
        "make_node", "next_open", "retract", "settle", "take_row", "turn_label",
    },
    ("deal_rows", "kernels/z/test_crowd.py", "deal_rows"): {"shard_of"},
    ("fill_table", "kernels/test_text_ranks.py", "TextRanks"): {"fill_table"},
    ("read_labels", "kernels/test_text_ranks.py", "TextRanks"): {
        "ends_of", "first_slot", "is_same_text", "mix_word", "read_labels",
    },
    ("pair_distances", "methods/tuples/test_lanes.py", "_distances"): {"pair_distances"},
    ("write_ranges", "methods/tuples/test_published_columns.py", "PublishedColumns"): {"write_ranges"},
    ("copy_labels", "methods/tuples/test_published_columns.py", "PublishedColumns"): {"copy_labels"},
    ("choose_records", "methods/sets/test_local.py", "NaiveLocalRecoding"): {
        "hash_of_label", "note_label", "refined_node", "slot_of", "take_out", "visit_new", "visit_old", "visit_sets",
    },
    ("refine_records", "methods/sets/test_local.py", "NaiveLocalRecoding"): {"refine_records"},
    ("publish_rows", "methods/z/test_withholding.py", "ShownSets"): {
        "change_by_joining", "change_by_leaving", "may_show", "note_peak", "person_row", "plus_high", "plus_low",
        "publish_rows",
    },
    ("show_again", "methods/z/test_withholding.py", "ShownSets"): {"show_again"},
    ("load_labels", "kernels/z/test_label_crowd.py", "load"): {"load_labels"},
    ("pack_labels", "kernels/z/test_label_crowd.py", "dump"): {"pack_labels"},
}  # fmt: skip
"""Kernels that no test names: the kernel that calls them, the test that compares it with something independent, and
what that test names for it. A kernel that decides something by itself should rather be tested alone."""


def test_every_kernel_is_tested_alone_or_through_a_caller():
    called = {name: set() for name in NAMES}
    for node in FUNCTIONS.values():
        called[node.name] |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} & NAMES
    for (caller, test, named), pieces in COVERED.items():
        reached = {caller}
        while more := set().union(*(called[name] for name in reached)) - reached:
            reached |= more
        assert pieces - reached == set(), f"not called by {caller}"
        assert named in code_names(TESTS / test)
    alone = set().union(*(code_names(path) for path in TESTS.rglob("*.py") if path != Path(__file__).resolve()))
    assert NAMES - alone == set().union(*COVERED.values())


def code_names(path):
    """What a test imports, accesses, patches by name: its code, not its prose."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def test_kernels_import_arrays_and_kernels_alone():
    imported = {
        (path.name, name)
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        for name in imports_of(node)
        if name.split(".")[0] not in ALLOWED and not name.startswith("shoal.kernels.")
    }
    assert imported == set()


def imports_of(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []


def test_kernel_modules_can_be_imported():
    for path in KERNELS:
        importlib.import_module(".".join(("shoal.kernels", *path.relative_to(FOLDER).with_suffix("").parts)))


def checks_directly(node):
    """Whether a function asserts, raises, or expects an exception."""
    statements = any(isinstance(inner, ast.Assert | ast.Raise) for inner in ast.walk(node))
    return statements or bool({"raises", "fail", "warns"} & calls_of(node))


def calls_of(node):
    calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}


def test_every_test_checks_something():
    """Itself or through a function of the tests or of shoal.testing, by name. A script in the docs need only run."""
    files = [*TESTS.rglob("*.py"), *(FOLDER.parent / "testing").rglob("*.py")]
    functions = [node for path in files for node in nodes_of(path)]
    functions = [node for node in functions if isinstance(node, ast.FunctionDef)]
    checking = {node.name for node in functions if checks_directly(node)}
    calls = {node.name: set() for node in functions}
    for node in functions:
        calls[node.name] |= calls_of(node)
    while more := {name for name, called in calls.items() if name not in checking and called & checking}:
        checking |= more
    tests = [node for node in functions if node.name.startswith("test_")]
    lacking = {node.name for node in tests if not checks_directly(node) and not calls_of(node) & checking}
    assert lacking == {"test_a_script_runs"}


def test_planted_defects_have_their_place():
    """`python -m tests.mutants` replaces one place of the source for each; code that moves must take it along."""
    source = FOLDER.parent
    counts = {f"{one.file}: {one.defect}": (source / one.file).read_text().count(one.old) for one in MUTANTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_planted_defects_name_tests_that_exist():
    for file, _, name in {one.test.partition("::") for one in MUTANTS}:
        text = (TESTS.parent / file).read_text()
        assert not name or f"def {name.partition('[')[0]}(" in text, f"{file}: {name}"


def test_no_test_sleeps():
    pattern = re.compile(r"\b(?:time\.)?sleep\(")
    here = Path(__file__).resolve()
    assert [path.name for path in TESTS.rglob("*.py") if path != here and pattern.search(path.read_text())] == []


def test_names_of_tests_do_not_depend_on_the_clock():
    """A gzip header contains the time: as a parameter it would give one test two names in two workers."""
    for path in TESTS.rglob("*.py"):
        for node in nodes_of(path):
            for decorator in getattr(node, "decorator_list", ()):
                for call in ast.walk(decorator):
                    if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "compress":
                        assert any(word.arg == "mtime" for word in call.keywords), f"{path.name}: {node.name}"
