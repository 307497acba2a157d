"""Runs in which TCP reacts to a queue."""

from handmade import MS, SECOND, TCP, HandmadeRun, Rows, scenario

PRODUCT_BYTES = 125_000
"""10 Mbit/s for 100 ms."""

CONTROL, NEWCOMERS, QUEUE = "tcp.congestion", "traffic.newcomer.flows", "link.bottleneck.forward.queue"


def run_of(control: str, newcomers: int, products: int | None, seed: int = 1) -> HandmadeRun:
    """A buffer of some products, or none of them: Reno reacts every `products ** 2` s, CUBIC every `products` s."""
    size = products or 1
    queue = {"qdisc": "bfifo", "limit_bytes": size * PRODUCT_BYTES} if products else {"qdisc": "fq_codel"}
    network = scenario({"old": TCP, "newcomer": TCP | {"flows": newcomers, "start_ns": 10 * SECOND}}, 300, queue=queue)
    epoch_s = size**2 if control == "reno" else size
    flows: Rows = [
        {"flow": "old/1", "t_ns": n * epoch_s * SECOND + step * SECOND // 10,
         "state": "recovery" if step == 5 else "open", "delivered_bytes": (n * 10 + step) * 1000}
        for n in range(4) for step in range(1, 10)
    ]  # fmt: skip
    if newcomers:
        flows += [
            {"flow": "newcomer/1", "t_ns": 10 * SECOND + n * SECOND // 10, "delivered_bytes": n * 1000}
            for n in range(50)
        ]
    rows = {"flows": flows, "sojourns": [{"t_ns": 0, "sojourn_ns": size * 100 * MS, "packets": 1}]}
    label = f"{products} products" if products else "fq_codel"
    point = {CONTROL: control, NEWCOMERS: str(newcomers), QUEUE: label}
    return HandmadeRun(network, rows, seed=seed, point=point, id="-".join([*point.values(), str(seed)]))
