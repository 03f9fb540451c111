"""Records what a cold start would compile:  precompile.py FOLDER FILE

Imports every module of both packages in FOLDER, has those compile that do so at the first question, and writes to FILE
the regular expressions and dataclass methods, for `ext.aws.cold_start`. Runs in the Python that will read them, in its
own process; the same sources give the same bytes.
"""

from __future__ import annotations

import contextlib
import importlib
import marshal
import pkgutil
import sys
from pathlib import Path
from typing import Any

#: The last marshal format that writes a value independently of other references to it.
VERSION = 2


def main(folder: str, file: str) -> None:
    sys.path.insert(0, folder)
    from chapterverse_api.ext.aws import cold_start

    # Ignore an existing file, which another Python may have made.
    cold_start.install(Path("nowhere"))
    compiler, patterns, sources = cold_start.compiler, dict[tuple[Any, int], bytes](), dict[str, bytes]()
    compile_anew, make = compiler.compile, compiler._sre.compile

    def record_pattern(pattern: Any, flags: int = 0) -> Any:
        def make_and_record(text: Any, all_flags: int, code: list[int], *groups: Any) -> Any:
            if type(text) in (str, bytes):
                # Some of these integers are enums, which marshal rejects.
                patterns[text, int(flags)] = marshal.dumps((int(all_flags), [*map(int, code)], *groups), VERSION)
            return make(text, all_flags, code, *groups)

        compiler._sre.compile = make_and_record
        try:
            return compile_anew(pattern, flags)
        finally:
            compiler._sre.compile = make

    def record_method(source: str, *namespaces: Any) -> None:
        code = compile(source, "<string>", "exec")
        sources[source] = marshal.dumps(code, VERSION)
        exec(code, *namespaces)

    cold_start.patch(record_pattern, record_method)

    import_all("chapterverse_api", "chapterverse")
    from chapterverse_api.search import question

    question.compile_patterns()
    known = [dict(sorted(entries.items(), key=repr)) for entries in (patterns, sources)]
    Path(file).write_bytes(marshal.dumps((cold_start.MAGIC, *known), VERSION))


def import_all(*packages: str) -> None:
    for package in packages:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            # Modules that only a build runs may lack their dependencies here.
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
