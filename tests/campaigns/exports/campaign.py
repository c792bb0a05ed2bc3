"""Exported programs under sanitizers and valgrind, called in several threads, loaded often."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ansorpy.codegen.c.generator import style_of
from ansorpy.codegen.c.loader import flags_of
from ansorpy.target import Target
from benchmarks.zoo.light import NAMES, light_model
from tests.campaigns.campaign import Campaign
from tests.campaigns.exports.called import (
    SANITIZED,
    VALGRIND,
    Caller,
    Calls,
    Left,
    compile_c,
)
from tests.campaigns.exports.programs import (
    Exportable,
    compiled_network,
    random_kernel,
    random_network,
)

__all__ = ["EXPORTS"]

RANDOM, CHECKED, LOADED = 50, 10, 3
"""Cases: random programs as sanitized C, as machine code in valgrind, and loaded 1,000 times;
after them come the ``light`` networks as sanitized C and as machine code, and a program with a
fault."""

_LOADS = 1000
_GROWTH_BYTES = 1 << 20
"""Resident memory that may come after the first hundred loads: less than one page a load, as the
allocator's arenas settle.  A leak of a page in each of the other 900 loads is 3.5 MiB."""


def _case(rng: np.random.Generator, number: int) -> str:
    if number < RANDOM:
        target, calls = _c_target(rng), _c_calls(rng)
        return _sanitized(_random_program(rng, target, number), target, calls)
    number -= RANDOM
    if number < CHECKED:
        return _in_valgrind(_random_program(rng, Target.parse("x86-64-v3"), number))
    number -= CHECKED
    if number < LOADED:
        return _loaded_often(_random_program(rng, Target.host(), number))
    number -= LOADED
    if number == 2 * len(NAMES):
        return _planted(rng)
    model = light_model(NAMES[number % len(NAMES)], 0)
    if number < len(NAMES):
        target = Target.parse("c")
        return _sanitized(compiled_network(model, target, 0), target, Calls())
    return _from_c(compiled_network(model, Target.host(), 0))


def _random_program(rng: np.random.Generator, target: Target, number: int) -> Exportable:
    """A network or an operator, in turn."""
    return random_kernel(rng, target, 2) if number % 2 else random_network(rng, target)


def _c_target(rng: np.random.Generator) -> Target:
    names = ("c", "c:word=32,l2=0", "c:vector=128", "c:vector=256", "c:cores=2")
    return Target.parse(str(rng.choice(names)))


def _c_calls(rng: np.random.Generator) -> Calls:
    return Calls(threads=2, callers=int(rng.integers(1, 4)), runs=2, loads=2)


def _sanitized(program: Exportable, target: Target, calls: Calls) -> str:
    """Compile C with AddressSanitizer and UBSan, whose findings end the process."""
    # The caller has the flags, too: libgomp leaks 8 bytes whenever it is loaded and unloaded.
    flags = (*SANITIZED, *flags_of(style_of(target)))
    with TemporaryDirectory(prefix="ansorpy-exports-") as name:
        folder = Path(name)
        program.export(folder / "net.c")
        compile_c(folder, ["net.c"], "net.so", (*flags, "-shared", "-fPIC"))
        caller = Caller(folder, program.inputs, program.outputs, flags)
        program.check(caller("net.so", program.feeds, calls).outputs)
    return "sanitized C"


def _planted(rng: np.random.Generator) -> str:
    """A write beyond the outputs is found."""
    target = Target.parse("c")
    program = random_kernel(rng, target, 1)
    while not program.outputs[0].shape:
        program = random_kernel(rng, target, 1)

    def export(path: Path) -> None:
        program.export(path)
        path.write_text(path.read_text().replace("outputs[0].shape[0] =", "outputs[99].shape[0] ="))

    try:
        _sanitized(replace(program, export=export), target, Calls())
    except AssertionError as error:
        if "AddressSanitizer" in str(error):
            return "fault that is found"
        raise
    raise AssertionError("nobody notices a write beyond the outputs")


def _in_valgrind(program: Exportable) -> str:
    """Machine code for a processor that valgrind emulates reads nothing uninitialised."""
    with TemporaryDirectory(prefix="ansorpy-exports-") as name:
        program.export(Path(name, "net.so"))
        caller = Caller(Path(name), program.inputs, program.outputs)
        calls = Calls(threads=2, callers=2, runs=3, loads=2)
        program.check(caller("net.so", program.feeds, calls, VALGRIND).outputs)
    return "machine code in valgrind"


def _from_c(program: Exportable) -> str:
    """Machine code computes the same from C with one thread and with two."""
    with TemporaryDirectory(prefix="ansorpy-exports-") as name:
        program.export(Path(name, "net.so"))
        caller = Caller(Path(name), program.inputs, program.outputs)
        for threads in (1, 2):
            program.check(caller("net.so", program.feeds, Calls(threads)).outputs)
    return "machine code from C"


def _loaded_often(program: Exportable) -> str:
    """Memory, files and threads do not grow with the number of loads."""
    with TemporaryDirectory(prefix="ansorpy-exports-") as name:
        program.export(Path(name, "net.so"))
        caller = Caller(Path(name), program.inputs, program.outputs)
        calls = Calls(threads=2, callers=2, runs=2, loads=_LOADS)
        called = caller("net.so", program.feeds, calls)
        program.check(called.outputs)
    early, late = called.left
    assert _is_flat(early, late), f"{early} became {late}"
    return f"loaded {_LOADS} times"


def _is_flat(early: Left, late: Left) -> bool:
    held = (early.files, early.threads) == (late.files, late.threads)
    return held and late.resident_bytes - early.resident_bytes <= _GROWTH_BYTES


EXPORTS = Campaign(
    "exports programs, and runs them under sanitizers, in valgrind, and loaded 1,000 times",
    _case,
    size=RANDOM + CHECKED + LOADED + 2 * len(NAMES) + 1,
    short=1,
    limit_s=3600.0,
)
