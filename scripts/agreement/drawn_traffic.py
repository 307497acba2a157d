"""The other traffic of random scenarios, by kind."""

from collections.abc import Callable, Mapping

from dice import Dice, Table, Value

MOST_DATAGRAMS = 10_000
"""A flood has at most so many per second. With 53,000, the guest's processor was saturated."""


def _up(**keys: Value) -> Table:
    return {"from": "h1", "to": "h2", **keys}


def _down(**keys: Value) -> Table:
    return {"from": "h2", "to": "h1", **keys}


def _back(dice: Dice, _: int, duration: float) -> Table:
    """Flows in the other direction."""
    start = f"{round(duration * dice.uniform(0, 0.3) * 1000)}ms"
    return _down(flows=dice.count(1, 8), congestion=dice.choice(["reno", "cubic", "bbr"]), start=start)


def _udp(dice: Dice, rate: int, duration: float) -> Table:
    """Datagrams at a part of the link's rate, up to a flood."""
    start, pattern = f"{round(duration * dice.uniform(0, 0.5))}s", dice.choice(["constant", "poisson"])
    sent, size = round(rate * dice.scaled(0.05, 1.2)), dice.count(100, 1448)
    least = round(sent / 8 / MOST_DATAGRAMS)
    return _up(rate=f"{sent}bit", size=f"{max(size, least)}b", start=start, pattern=pattern)


def _web(dice: Dice, rate: int, _: float) -> Table:
    """Pages in the direction of the long flows."""
    page = {"bytes": f"{dice.count(5_000, max(10_000, rate // 8))}b", "interval": dice.ms(1000, 5000)}
    objects: Table = (
        {"objects": dice.count(1, 20), "object_bytes": f"{dice.count(1000, 30_000)}b"} if dice.chance(0.4) else {}
    )
    return _up(**page, **objects)


def _ladder(dice: Dice, rate: int) -> list[Value]:
    """Four bit rates; the lowest fits into the link's rate, the highest may not."""
    return [f"{round(share * rate * dice.uniform(0.9, 1.1))}bit" for share in (0.1, 0.25, 0.5, 1)]


def _bittorrent(dice: Dice, _: int, __: float) -> Table:
    peers = dice.count(2, 10)
    return _up(peers=peers, unchoked=dice.randint(1, min(peers, 4)), congestion=dice.choice(["reno", "cubic"]))


def _load_test(dice: Dice, _: int, duration: float) -> Table:
    return _up(delay=f"{round(duration / 8)}s", congestion=dice.choice(["reno", "cubic"]))


LOAD_TESTS = ("rrul", "rrul_be", "tcp_bidirectional", "tcp_ndown", "tcp_nup")
OTHERS: Mapping[str, Callable[[Dice, int, float], Table]] = {
    "tcp": _back,
    "udp": _udp,
    "web": _web,
    "video": lambda dice, rate, _: _up(segment=dice.choice(["2s", "4s"]), rates=_ladder(dice, rate)),
    "bittorrent": _bittorrent,
    "voip": lambda dice, _, __: _up(both_ways=dice.chance(0.7)),
    "game": lambda dice, _, __: _up(tick=dice.ms(10, 50)),
    "dns": lambda dice, _, __: _up(interval=dice.ms(200, 2000), pattern=dice.choice(["constant", "poisson"])),
    "irtt": lambda dice, _, __: _up(interval=dice.ms(20, 500), size=f"{dice.count(60, 1400)}b"),
    **dict.fromkeys(LOAD_TESTS, _load_test),
}
"""The other traffic by kind; `ping` is in every scenario."""
