"""Functions for servers with many tools; the first argument is their number."""

import sys

SOURCE = '''
async def tool_{number}(city: str, days: int = 3, unit: str = "celsius") -> str:
    """Forecast the weather for a city.

    Args:
        city: The city.
        days: How many days.
        unit: The unit of temperatures.
    """
    return city
'''
COUNT = int(sys.argv[1])


def make_functions():
    """Compile all functions at once, like a module."""
    names: dict[str, object] = {}
    exec(compile("".join(SOURCE.format(number=number) for number in range(COUNT)), "<tools>", "exec"), names)  # noqa: S102
    return [names[f"tool_{number}"] for number in range(COUNT)]
