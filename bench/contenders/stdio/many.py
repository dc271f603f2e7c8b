"""Functions for servers with many tools: as many as `argv` says, of three parameters each, with a docstring."""

import sys

ONE = '''
async def tool_{number}(city: str, days: int = 3, unit: str = "celsius") -> str:
    """Tell what the weather is going to be.

    Args:
        city: Where.
        days: For how many days.
        unit: The unit of temperatures.
    """
    return city
'''
COUNT = int(sys.argv[1])


def functions():
    """They are all compiled at once, as those of a module are."""
    names: dict[str, object] = {}
    exec(compile("".join(ONE.format(number=number) for number in range(COUNT)), "<tools>", "exec"), names)  # noqa: S102
    return [names[f"tool_{number}"] for number in range(COUNT)]
