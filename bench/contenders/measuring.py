"""What the clients of a benchmark are made to do; runs in the environment of each of them."""

import asyncio
import resource
import time


async def rates(call, count, depth):
    """Calls a second, one at a time and so many at a time."""

    async def several(numbers):
        for _ in numbers:
            await call()

    async def timed(count, depth):
        numbers = iter(range(count))
        start = time.perf_counter()
        await asyncio.gather(*(several(numbers) for _ in range(depth)))
        return count / (time.perf_counter() - start)

    await timed(count // 4, depth)
    return [await timed(count // 8, 1), await timed(count, depth)]


async def one_large(call, size):
    """Seconds that a result of so many bytes takes, and the bytes of memory that it takes at most."""
    await call(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    result = await call(size)
    took = time.perf_counter() - start
    assert len(result.content[0].text) == size
    return [took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10]
