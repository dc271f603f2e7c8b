"""Files before and after their migration, and the notes about what is left to do by hand."""

from __future__ import annotations

from typing import NamedTuple

from mcpspec_codegen.migrate.migration import TypeNames

__all__ = ["CASES", "MISSING", "NAMES", "Case"]

MISSING = {
    "AnyFunction": "write Callable[..., Any]",
    "CLIENT_REQUESTS": "use the tables of a revision",
    "MethodT": "define a TypeVar of your own",
}
NAMES = TypeNames(
    frozenset({"CallToolResult", "ErrorData", "LATEST_PROTOCOL_VERSION", "Role", "TextContent", "Tool"}), MISSING
)

PRIVATE = "a private name, which has no equal"
UNKNOWN = "mcpspec.compat has no such name; import it from the module that defines it"
STRING = "a string; replace it by hand with mcpspec.compat"
PASSED_ON = "the module is passed on, so the names that are taken from it are unknown; replace it by hand"
ASSIGNED = "this changes the official module; decide by hand which module is meant"
UNUSED = "no type is used through it; remove it, or import mcp"
CLASS_TEST = "an object of the SDK is an instance of it, but is of another class; use isinstance, or sdk.install()"
STAR = "import the names that are used, and migrate again"


def stays(variable: str, *names: str) -> str:
    return f"{variable!r} stays this module because of {', '.join(names)}; change that, and migrate again"


class Case(NamedTuple):
    """A file, its migration, and the notes as `line: name: reason`."""

    before: str
    after: str
    notes: tuple[str, ...] = ()


def untouched(before: str, *notes: str) -> Case:
    return Case(before, before, notes)


CASES = {
    # tests of classes
    "tests of classes": Case(
        "from mcp.types import TextContent as T, Tool\n"
        "if type(x) is T or x.__class__ in (T, Tool) or issubclass(type(x), Tool): ...\n"
        "known = {T: 1}\n"
        "@show.register(Tool)\n"
        "def show_tool(tool: Tool) -> None: ...\n"
        "if isinstance(x, T) or type(x) is str or issubclass(Own, Tool): ...\n",
        "from mcpspec.compat import TextContent as T, Tool\n"
        "if type(x) is T or x.__class__ in (T, Tool) or issubclass(type(x), Tool): ...\n"
        "known = {T: 1}\n"
        "@show.register(Tool)\n"
        "def show_tool(tool: Tool) -> None: ...\n"
        "if isinstance(x, T) or type(x) is str or issubclass(Own, Tool): ...\n",
        (
            f"2: TextContent: {CLASS_TEST}",
            f"2: Tool: {CLASS_TEST}",
            f"3: TextContent: {CLASS_TEST}",
            f"4: Tool: {CLASS_TEST}",
        ),
    ),
    "tests of classes of a module": Case(
        "from mcp import types as t\nif type(x) == t.Tool: ...\n",
        "from mcpspec import compat as t\nif type(x) == t.Tool: ...\n",
        (f"2: Tool: {CLASS_TEST}",),
    ),
    "tests of classes by dotted names": Case(
        "import mcp.types\nif type(x) is not mcp.types.Tool: ...\n",
        "import mcpspec.compat\nif type(x) is not mcpspec.compat.Tool: ...\n",
        (f"2: Tool: {CLASS_TEST}",),
    ),
    # names
    "names": Case(
        "from mcp.types import Tool, TextContent as T\n", "from mcpspec.compat import Tool, TextContent as T\n"
    ),
    "names of mcp_types": Case("from mcp_types import Tool\n", "from mcpspec.compat import Tool\n"),
    "names of submodules": Case(
        "from mcp_types.jsonrpc import ErrorData\nfrom mcp.types.version import LATEST_PROTOCOL_VERSION\n",
        "from mcpspec.compat import ErrorData\nfrom mcpspec.compat import LATEST_PROTOCOL_VERSION\n",
    ),
    "names of the package": Case("from mcp import Tool\n", "from mcpspec.compat import Tool\n"),
    "a name that the package renames": Case(
        "from mcp import SamplingRole, SamplingRole as R\n",
        "from mcpspec.compat import Role as SamplingRole, Role as R\n",
    ),
    "an explicit re-export": Case("from mcp.types import Tool as Tool\n", "from mcpspec.compat import Tool as Tool\n"),
    "a missing name splits the import": Case(
        "from mcp.types import Tool, AnyFunction\n",
        "from mcp.types import AnyFunction\nfrom mcpspec.compat import Tool\n",
        ("1: mcp.types.AnyFunction: write Callable[..., Any]",),
    ),
    "nothing but missing names": untouched(
        "from mcp_types.methods import CLIENT_REQUESTS\n",
        "1: mcp_types.methods.CLIENT_REQUESTS: use the tables of a revision",
    ),
    "a missing name of the package": untouched(
        "from mcp import MethodT\n", "1: mcp.MethodT: define a TypeVar of your own"
    ),
    "unknown and private names": untouched(
        "from mcp.types import (\n    AnyUrl,\n    _private,\n)\n",
        f"2: mcp.types.AnyUrl: {UNKNOWN}",
        f"3: mcp.types._private: {PRIVATE}",
    ),
    "private modules": untouched(
        "from mcp_types._types import Tool\nimport mcp_types._types as t\n",
        f"1: mcp_types._types: {PRIVATE}",
        f"2: mcp_types._types: {PRIVATE}",
    ),
    "a star": untouched("from mcp.types import *\nfrom mcp import *\n", f"1: mcp.types.*: {STAR}", f"2: mcp.*: {STAR}"),
    "other parts of the SDK": untouched(
        "import mcp\nimport mcp.client.stdio\nfrom mcp import ClientSession\nfrom mcp.server import Server\nmcp.run\n"
    ),
    "other modules": untouched(
        "import types\nfrom .types import Tool\nfrom . import mcp\nfrom mcpx.types import Tool\n"
        "mcp = 1\nmcp.types.Tool\ntypes.Tool\n"
    ),
    # layout
    "comments go with their names": Case(
        """\
from mcp.types import (  # noqa: F401
    # the tool
    Tool,  # one
    # anything
    AnyFunction,  # two
    ErrorData as E,
    # the end
)
""",
        """\
from mcp.types import (  # noqa: F401
    # anything
    AnyFunction,  # two
    # the end
)
from mcpspec.compat import (  # noqa: F401
    # the tool
    Tool,  # one
    ErrorData as E,
    # the end
)
""",
        ("5: mcp.types.AnyFunction: write Callable[..., Any]",),
    ),
    "no comma at the end": Case(
        "from mcp.types import (\n    MethodT,  # m\n    AnyFunction,\n    Tool,\n    Role # r\n)",
        "from mcp.types import (\n    MethodT,  # m\n    AnyFunction\n)\n"
        "from mcpspec.compat import (\n    Tool,\n    Role # r\n)",
        ("2: mcp.types.MethodT: define a TypeVar of your own", "3: mcp.types.AnyFunction: write Callable[..., Any]"),
    ),
    "one name needs no parentheses": Case(
        "from mcp.types import(\n    Tool, AnyFunction,\n)\n",
        "from mcp.types import AnyFunction\nfrom mcpspec.compat import Tool\n",
        ("2: mcp.types.AnyFunction: write Callable[..., Any]",),
    ),
    "parentheses in one line": Case(
        "from mcp import (Tool, Client, Role, Server, types)\n",
        "from mcp import (Client, Server)\nfrom mcpspec import compat as types\n"
        "from mcpspec.compat import (Tool, Role)\n",
    ),
    "two lines in parentheses": Case(
        "from mcp.types import (Tool, AnyFunction,\n                       Role)\n",
        "from mcp.types import AnyFunction\nfrom mcpspec.compat import (Tool,\n                       Role)\n",
        ("1: mcp.types.AnyFunction: write Callable[..., Any]",),
    ),
    "lines that begin with a comma": Case(
        "from mcp.types import (\n    Tool # t\n  , AnyFunction # f\n  , MethodT\n  , Role # r\n)\n",
        "from mcp.types import (\n    AnyFunction # f\n  , MethodT\n)\n"
        "from mcpspec.compat import (\n    Tool # t\n  , Role # r\n)\n",
        ("3: mcp.types.AnyFunction: write Callable[..., Any]", "4: mcp.types.MethodT: define a TypeVar of your own"),
    ),
    "a comma that follows a comment": Case(
        "from mcp.types import (Tool\n  , AnyFunction  # f\n  , Role)\n",
        "from mcp.types import (AnyFunction  # f\n  ,)\nfrom mcpspec.compat import (Tool\n  , Role)\n",
        ("2: mcp.types.AnyFunction: write Callable[..., Any]",),
    ),
    "a continued line": Case(
        "from mcp.types import Tool, \\\n    AnyFunction, Role\n",
        "from mcp.types import AnyFunction\nfrom mcpspec.compat import Tool, \\\n    Role\n",
        ("2: mcp.types.AnyFunction: write Callable[..., Any]",),
    ),
    "comments around a statement": Case(
        "# above\nfrom mcp import Client, Tool  # noqa\n# below\n",
        "# above\nfrom mcp import Client  # noqa\nfrom mcpspec.compat import Tool  # noqa\n# below\n",
    ),
    "statements in one line": Case(
        "x = 1; from mcp import Client, Tool; y = 2\nif x: from mcp import Client, types;\n",
        "x = 1; from mcp import Client; from mcpspec.compat import Tool; y = 2\n"
        "if x: from mcp import Client; from mcpspec import compat as types;\n",
    ),
    "line ends of Windows": Case(
        "from mcp import Client, Tool\r\nx = '''a\r\n'''\r\n",
        "from mcp import Client\r\nfrom mcpspec.compat import Tool\r\nx = '''a\r\n'''\r\n",
    ),
    "unusual spacing": Case(
        "from   mcp.types   import  Tool,Role  ;  x=[ 1,2 ]\n",
        "from   mcpspec.compat   import  Tool,Role  ;  x=[ 1,2 ]\n",
    ),
    # places
    "functions, type checkers and fallbacks": Case(
        """\
if TYPE_CHECKING:
    from mcp.types import Tool
try:
    from mcp_types import Role
except ImportError:
    from mcp.types import Role
def f():
    from mcp import types
    class C:
        import mcp.types as t
        x = t.Tool
    return types.Tool
""",
        """\
if TYPE_CHECKING:
    from mcpspec.compat import Tool
try:
    from mcpspec.compat import Role
except ImportError:
    from mcpspec.compat import Role
def f():
    from mcpspec import compat as types
    class C:
        import mcpspec.compat as t
        x = t.Tool
    return types.Tool
""",
    ),
    # modules under a variable
    "modules": Case(
        "from mcp import types\nfrom mcp import types as mcp_types\nimport mcp.types as t\nimport mcp_types as m\n"
        "from mcp_types import version, jsonrpc as j\nimport mcp.types.version as v\n"
        "x: types.Tool | mcp_types.Tool | t.Tool | m.Tool\nversion.LATEST_PROTOCOL_VERSION, j.ErrorData\n",
        "from mcpspec import compat as types\nfrom mcpspec import compat as mcp_types\nimport mcpspec.compat as t\n"
        "import mcpspec.compat as m\nfrom mcpspec import compat as version, compat as j\nimport mcpspec.compat as v\n"
        "x: types.Tool | mcp_types.Tool | t.Tool | m.Tool\nversion.LATEST_PROTOCOL_VERSION, j.ErrorData\n",
    ),
    "a module called compat": Case("from mcp import types as compat\n", "from mcpspec import compat\n"),
    "a module beside other names": Case(
        "from mcp import ClientSession, Tool, types\n",
        "from mcp import ClientSession\nfrom mcpspec import compat as types\nfrom mcpspec.compat import Tool\n",
    ),
    "a module beside other modules": Case(
        "import os, mcp.types as t, sys\n", "import os, sys\nimport mcpspec.compat as t\n"
    ),
    "mcp_types under its own name": Case(
        "import mcp_types\nimport mcp_types.version\nx: 'mcp_types.Tool' = mcp_types.version.LATEST_PROTOCOL_VERSION\n",
        "import mcpspec.compat as mcp_types\nimport mcpspec.compat as mcp_types\n"
        "x: 'mcp_types.Tool' = mcp_types.LATEST_PROTOCOL_VERSION\n",
    ),
    "a module that may be missing": Case(
        "try:\n    from mcp import types\nexcept ImportError:\n    types = None\n"
        "if types is not None and types:\n    assert types\n    x = types.Tool if types else 1\n",
        "try:\n    from mcpspec import compat as types\nexcept ImportError:\n    types = None\n"
        "if types is not None and types:\n    assert types\n    x = types.Tool if types else 1\n",
    ),
    "a missing name of a module": untouched(
        "from mcp import types\ntypes.Tool\ntypes.AnyFunction\nx: 'types.Role | types.MethodT'\n",
        f"1: mcp.types: {stays('types', 'mcp.types.AnyFunction', 'mcp.types.MethodT')}",
        "3: mcp.types.AnyFunction: write Callable[..., Any]",
        "4: mcp.types.MethodT: define a TypeVar of your own",
    ),
    "only the other names move if a module stays": Case(
        "from mcp_types import Tool, methods\nmethods.CLIENT_REQUESTS\n",
        "from mcp_types import methods\nfrom mcpspec.compat import Tool\nmethods.CLIENT_REQUESTS\n",
        (
            f"1: mcp_types.methods: {stays('methods', 'mcp_types.methods.CLIENT_REQUESTS')}",
            "2: mcp_types.methods.CLIENT_REQUESTS: use the tables of a revision",
        ),
    ),
    "the same variable in another scope": Case(
        "from mcp import types\ndef f(types):\n    return types.AnyFunction\ndef g():\n"
        "    import types\n    return types.FunctionType\nclass C:\n    types = 1\nx = types.Tool\n",
        "from mcpspec import compat as types\ndef f(types):\n    return types.AnyFunction\ndef g():\n"
        "    import types\n    return types.FunctionType\nclass C:\n    types = 1\nx = types.Tool\n",
    ),
    "a module that stays in one scope": Case(
        "def f():\n    from mcp import types\n    return types.Tool\n"
        "def g():\n    from mcp import types\n    return types.MethodT\n",
        "def f():\n    from mcpspec import compat as types\n    return types.Tool\n"
        "def g():\n    from mcp import types\n    return types.MethodT\n",
        (
            f"5: mcp.types: {stays('types', 'mcp.types.MethodT')}",
            "6: mcp.types.MethodT: define a TypeVar of your own",
        ),
    ),
    "a global of a function": Case(
        "def f():\n    global types\n    from mcp import types\ndef g():\n    return types.Tool\n",
        "def f():\n    global types\n    from mcpspec import compat as types\ndef g():\n    return types.Tool\n",
    ),
    "names that are looked up": Case(
        "from mcp import types\nif hasattr(types, 'Tool'):\n    getattr(types, \"Tool\", None)\n",
        "from mcpspec import compat as types\nif hasattr(types, 'Tool'):\n    getattr(types, \"Tool\", None)\n",
    ),
    "missing names that are looked up": untouched(
        "from mcp import types\nhasattr(types, 'MethodT')\n",
        f"1: mcp.types: {stays('types', 'mcp.types.MethodT')}",
        "2: mcp.types.MethodT: define a TypeVar of your own",
    ),
    "a module that is passed on": untouched(
        "from mcp import types\ngetattr(types, name)\nshow(types)\n",
        f"1: mcp.types: {stays('types', 'mcp.types')}",
        f"2: mcp.types: {PASSED_ON}",
        f"3: mcp.types: {PASSED_ON}",
    ),
    "a module that is changed": untouched(
        "from mcp import types\ntypes.Tool = None\ndel types.Role\n",
        f"1: mcp.types: {stays('types', 'mcp.types.Role', 'mcp.types.Tool')}",
        f"2: mcp.types.Tool: {ASSIGNED}",
        f"3: mcp.types.Role: {ASSIGNED}",
    ),
    # dotted names
    "dotted names": Case(
        "import mcp.types\ndef f(x: mcp.types.Tool) -> (mcp . types.version . LATEST_PROTOCOL_VERSION): ...\n",
        "import mcpspec.compat\ndef f(x: mcpspec.compat.Tool) -> (mcpspec.compat . LATEST_PROTOCOL_VERSION): ...\n",
    ),
    "dotted names of the package": Case(
        "import mcp\nx: mcp.Tool | mcp.SamplingRole\ny = mcp.types.Tool\n",
        "import mcpspec.compat\nx: mcpspec.compat.Tool | mcpspec.compat.Role\ny = mcpspec.compat.Tool\n",
    ),
    "dotted names of a renamed package": Case(
        "import mcp as m\nx: m.types.Tool\n", "import mcpspec.compat\nx: mcpspec.compat.Tool\n"
    ),
    "a package that is still used": Case(
        "import mcp  # why\nx: mcp.types.Tool = mcp.ClientSession\n",
        "import mcp  # why\nimport mcpspec.compat  # why\nx: mcpspec.compat.Tool = mcp.ClientSession\n",
    ),
    "types of a package that is still used": Case(
        "import mcp.types\nx: mcp.types.Tool = mcp.ClientSession\n",
        "import mcp\nimport mcpspec.compat\nx: mcpspec.compat.Tool = mcp.ClientSession\n",
    ),
    "types beside the package": Case(
        "import mcp\nimport mcp.types\nx: mcp.types.Tool = mcp.ClientSession\n",
        "import mcp\nimport mcpspec.compat\nx: mcpspec.compat.Tool = mcp.ClientSession\n",
    ),
    "the import of another part": Case(
        "import mcp.client.stdio\nx: mcp.types.Tool = mcp.client.stdio.run\n",
        "import mcp.client.stdio\nimport mcpspec.compat\nx: mcpspec.compat.Tool = mcp.client.stdio.run\n",
    ),
    "a package that may be missing": Case(
        "try:\n    import mcp.types\nexcept ImportError:\n    mcp = None\nx = mcp and mcp.types.Tool\n",
        "try:\n    import mcp\n    import mcpspec.compat\nexcept ImportError:\n    mcp = None\n"
        "x = mcp and mcpspec.compat.Tool\n",
    ),
    "a missing dotted name": Case(
        "import mcp.types\nx = mcp.types.Tool, mcp.types.AnyFunction\n",
        "import mcp.types\nimport mcpspec.compat\nx = mcpspec.compat.Tool, mcp.types.AnyFunction\n",
        ("2: mcp.types.AnyFunction: write Callable[..., Any]",),
    ),
    "a dotted name after a migration": Case(
        "import mcp.types\nimport mcpspec.compat\nx = mcp.types.Tool, mcp.types.AnyFunction\n",
        "import mcp.types\nimport mcpspec.compat\nx = mcpspec.compat.Tool, mcp.types.AnyFunction\n",
        ("3: mcp.types.AnyFunction: write Callable[..., Any]",),
    ),
    "dotted names in two blocks": Case(
        "import mcp\nif x:\n    import mcp.types\ny = mcp.types.Tool\nz = mcp.run\n",
        "import mcp\nimport mcpspec.compat\nif x:\n    import mcp\n    import mcpspec.compat\n"
        "y = mcpspec.compat.Tool\nz = mcp.run\n",
    ),
    "a dotted name that a parameter hides": untouched(
        "import mcp.types\ndef f(mcp):\n    return mcp.types.Tool\n", f"1: mcp.types: {UNUSED}"
    ),
    "dotted names that are changed or passed on": untouched(
        "import mcp.types\nmcp.types.Tool = 1\nshow(mcp.types)\n",
        f"2: mcp.types.Tool: {ASSIGNED}",
        f"3: mcp.types: {PASSED_ON}",
    ),
    "a variable mcpspec": untouched(
        "import mcp.types\nmcpspec = 1\nmcp.types.Tool\n",
        "3: mcp.types.Tool: this file has another variable called 'mcpspec'; rename it, and migrate again",
    ),
    "an import without a use": untouched("import mcp.types\nmcp.run()\n", f"1: mcp.types: {UNUSED}"),
    # strings
    "dotted names in annotations": Case(
        "import mcp.types\ndef f(x: 'list[mcp.types.Tool]', y: mcp.types.Tool): ...\n",
        "import mcp.types\nimport mcpspec.compat\ndef f(x: 'list[mcp.types.Tool]', y: mcpspec.compat.Tool): ...\n",
        (f"2: mcp.types.Tool: {STRING}.Tool",),
    ),
    "annotations after a migration": untouched(
        "import mcpspec.compat as mcp_types\nx: 'mcp_types.Tool'\ny = cast('mcp_types.Tool', x)\n"
        "def f(mcp, z: 'mcp.types.Tool'): ...\n",
        f"3: mcp_types.Tool: {STRING}.Tool",
        f"4: mcp.types.Tool: {STRING}.Tool",
    ),
    "a submodule in an annotation": untouched(
        "import mcp_types\nx: 'mcp_types.jsonrpc.ErrorData'\n",
        f"1: mcp_types: {stays('mcp_types', 'mcp_types.jsonrpc.ErrorData')}",
        f"2: mcp_types.jsonrpc.ErrorData: {STRING}.ErrorData",
    ),
    "strings": untouched(
        "patch('mcp.types.Tool')\nimport_module(\"mcp_types\")\npatch(f'mcp.types.{name}')\n"
        "run('''\nfrom mcp.types import AnyFunction\nx = mcp_types.AnyFunction\n''')\n",
        f"1: mcp.types.Tool: {STRING}.Tool",
        f"2: mcp_types: {STRING}",
        f"3: mcp.types: {STRING}",
        f"5: mcp.types: {STRING}",
        "6: mcp_types.AnyFunction: write Callable[..., Any]",
    ),
    "prose and docstrings": untouched(
        "'''Like mcp.types.Tool.'''\ndef f():\n    'mcp.types.Tool'\nprint('install mcp.types first')\n"
        "open('mcp_types/x.json', 'mcp-types', b'mcp_types', 'x/mcp_types')\n# mcp.types.Tool\n"
    ),
    # whole files
    "a file that does not parse": untouched("import mcp\nx = (\n", "2: not parsed"),
    "a file that is nested too deeply": untouched(
        f"import mcp.types\nx = {' + '.join(['mcp.types.Tool'] * 400)}\n",
        "1: nested too deeply for LibCST; edit this file by hand",
    ),
    "a file of which LibCST loses a byte": untouched(
        "import mcp.types\n\x0cmcp.types.Tool\n", "1: LibCST does not keep every byte of this file; edit it by hand"
    ),
}
