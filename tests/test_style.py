"""The limits CONTRIBUTING.md names: sizes, docstrings, imports at the top, the loop grammar."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ansorpy.ir import loops
from tests.sources import FILES, PACKAGE, at, nodes, source, tree

MAX_FILE, MAX_FUNCTION, MAX_NESTING, MAX_MODULES = 450, 60, 4, 24

# Loaded where first needed: `import ansorpy` stays light and optional parts stay optional.
LAZY = {
    "IPython", "cupy", "grpc", "importlib", "islpy", "jinja2", "lightgbm", "llvmlite", "networkx",
    "onnx", "onnxruntime", "openvino", "pydantic", "ray", "rich", "scipy", "torch", "typer",
    "vl_convert",
    "ziglang",
}  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    return (n for n in nodes(tree) if isinstance(n, Function))


def long_functions(tree: ast.Module) -> list[str]:
    return [
        f"{f.name}: {f.end_lineno - f.lineno + 1} lines"
        for f in functions(tree)
        if f.end_lineno is not None and f.end_lineno - f.lineno + 1 > MAX_FUNCTION
    ]


def nesting(node: ast.AST, depth: int = 0) -> int:
    """Deepest chain of compound statements below *node*; an elif is not a level."""
    deepest = depth
    for child in ast.iter_child_nodes(node):
        opens = isinstance(child, (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Match))
        is_elif = isinstance(child, ast.If) and isinstance(node, ast.If) and child in node.orelse
        if isinstance(child, Function | ast.ClassDef | ast.expr):
            continue  # a function of its own, or no statement
        deepest = max(deepest, nesting(child, depth + (opens and not is_elif)))
    return deepest


def deep_functions(tree: ast.Module) -> list[str]:
    return [f.name for f in functions(tree) if nesting(f) > MAX_NESTING]


def undocumented(tree: ast.Module) -> list[str]:
    """Public classes and functions of the module's top level that have no docstring."""
    return [
        n.name
        for n in tree.body
        if isinstance(n, Function | ast.ClassDef)
        and not n.name.startswith("_")
        and ast.get_docstring(n) is None
        and not is_enum_or_node(n)
        and not is_overload(n)
    ]


def is_overload(n: ast.stmt) -> bool:
    """One typing of a function whose last definition carries the docstring."""
    return isinstance(n, Function) and any("overload" in ast.unparse(d) for d in n.decorator_list)


def is_enum_or_node(n: ast.stmt) -> bool:
    """A list of named values or fields explains itself; the grammar of the module names it."""
    if not isinstance(n, ast.ClassDef):
        return False
    bases = {ast.unparse(b) for b in n.bases}
    return "Enum" in bases or any(ast.unparse(d) == "node" for d in n.decorator_list)


def nested_imports(tree: ast.Module) -> list[str]:
    """Imports inside functions of anything that is not loaded lazily on purpose."""
    found = []
    for function in functions(tree):
        for n in ast.walk(function):
            if isinstance(n, ast.Import):
                found += [a.name for a in n.names if a.name.split(".")[0] not in LAZY]
            elif isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[0] not in LAZY:
                found.append(n.module or ".")
    return found


def unlisted(path: Path, tree: ast.Module) -> bool:
    """Whether a module that has public names does not list them."""
    assigned = {ast.unparse(t) for n in tree.body if isinstance(n, ast.Assign) for t in n.targets}
    needs_none = path.name in ("__main__.py", "__init__.py")
    return bool(tree.body) and not needs_none and "__all__" not in assigned


def is_lazy_on_purpose(path: Path) -> bool:
    """The package's lazy table, and verbs, which load their layer when they run."""
    return path == PACKAGE / "__init__.py" or "cli" in path.relative_to(PACKAGE).parts


def assert_none(violations: list[str]) -> None:
    assert not violations, "\n" + "\n".join(violations)


def test_files_can_be_read_in_one_sitting() -> None:
    lines = {path: len(source(path).splitlines()) for path in FILES}
    assert_none([f"{at(p)}: {n} lines" for p, n in lines.items() if n > MAX_FILE])


def test_folders_can_be_taken_in_at_a_glance() -> None:
    modules = Counter(p.parent for p in FILES if PACKAGE in p.parents and p.name != "__init__.py")
    assert_none([f"{at(p)}: {n} modules" for p, n in modules.items() if n > MAX_MODULES])


def test_functions_are_short() -> None:
    assert_none([f"{at(p)} {found}" for p in FILES for found in long_functions(tree(p))])


def test_functions_are_flat() -> None:
    assert_none([f"{at(p)} {found}" for p in FILES for found in deep_functions(tree(p))])


def test_modules_say_what_they_are_for() -> None:
    assert_none([at(p) for p in FILES if tree(p).body and not ast.get_docstring(tree(p))])


def test_public_names_have_docstrings() -> None:
    assert_none([f"{at(p)} {found}" for p in FILES for found in undocumented(tree(p))])


def test_modules_list_their_public_names() -> None:
    assert_none([at(p) for p in FILES if unlisted(p, tree(p))])


def test_imports_stand_at_the_top() -> None:
    checked = [p for p in FILES if not is_lazy_on_purpose(p)]
    assert_none([f"{at(p)} {found}" for p in checked for found in nested_imports(tree(p))])


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Names with an underscore that a test takes from what it tests; other packages are exempt."""
    ours = ("ansorpy", "benchmarks", "examples", "tests")
    imports = [n for n in nodes(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    foreign = {
        (alias.asname or alias.name).split(".")[0]
        for n in imports
        for alias in n.names
        if (getattr(n, "module", None) or alias.name).split(".")[0] not in ours
    }
    for n in nodes(tree):
        if isinstance(n, ast.Attribute) and is_private(n.attr):
            if ast.unparse(n.value) not in {"self", "cls", *foreign}:
                yield f"{n.lineno}: {ast.unparse(n)}"
        elif isinstance(n, ast.ImportFrom):
            yield from (f"{n.lineno}: import {a.name}" for a in n.names if is_private(a.name))
        elif isinstance(n, ast.Call) and called(n).endswith("setattr"):
            named = [a.value for a in n.args[:2] if isinstance(a, ast.Constant)]
            last = [str(name).rpartition(".")[2] for name in named]
            yield from (f"{n.lineno}: {name}" for name in last if is_private(name))


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return str(getattr(call.func, "attr", None) or getattr(call.func, "id", ""))


def is_private(name: str) -> bool:
    """Not of named tuples, nor `_repr_html_`, which is a notebook's."""
    of_tuples = ("_asdict", "_fields", "_make", "_replace")
    return name.startswith("_") and not name.endswith("_") and name not in of_tuples


def test_tests_go_through_public_names() -> None:
    tests = sorted(Path(__file__).parent.rglob("*.py"))
    assert_none([f"{at(p)}:{use}" for p in tests for use in private_uses(tree(p))])


def test_only_config_reads_the_environment() -> None:
    reading = re.compile(r"os\.(environ\.get|getenv)|environ\[\"ANSORPY")
    assert {p.name for p in FILES if reading.search(source(p))} <= {"config.py"}


def test_no_leftovers() -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    assert_none([at(p) for p in FILES if words.search(source(p))])


def test_the_loop_grammar_names_every_statement() -> None:
    grammar = (loops.__doc__ or "").split("Grammar::")[1].split("Loops start")[0]
    statements = {c.__name__ for c in vars(loops).values() if is_statement(c)}
    named = set(re.findall(r"\b([A-Z][A-Za-z]+)\b", grammar))
    assert statements | {"Program", "Param", "Buffer"} <= named
    assert named <= {n for n in vars(loops) if n[0].isupper()} | {"Stmt", "Expr"}
    for kind in loops.ForKind:
        assert kind.value.split(".")[0] in grammar
    for scope in loops.Scope:
        assert scope.value in grammar


def is_statement(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, loops.Stmt) and value is not loops.Stmt


def test_the_checks_themselves_fail_on_bad_code() -> None:
    long = "def f():\n" + "    x = 1\n" * 61
    assert long_functions(ast.parse(long)) == ["f: 62 lines"]
    assert undocumented(ast.parse("def g(): pass")) == ["g"]
    assert nested_imports(ast.parse("def f():\n    import os\n    import onnx")) == ["os"]
    assert unlisted(Path("a.py"), ast.parse("x = 1"))
    reaching = (
        "import os\nfrom ansorpy.ir import _a, b\nos._exit(1)\nb._c\nself._d\nsuper()._e()\n"
        "monkeypatch.setattr(b, '_f', 1)\nmonkeypatch.setattr('ansorpy.ir._g', 1)"
    )
    found = [use.rpartition(" ")[2] for use in private_uses(ast.parse(reaching))]
    assert sorted(found) == ["_a", "_f", "_g", "b._c", "super()._e"]
    deep = "def f():\n" + "".join("    " * (i + 1) + "if x:\n" for i in range(5)) + "    " * 6 + "y"
    assert deep_functions(ast.parse(deep)) == ["f"]
