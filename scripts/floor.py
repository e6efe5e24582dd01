"""The floor that `make bench` measures against: count, compare and add for every delivery, nothing else."""

from __future__ import annotations

from rumormill.kernels.jit import kernel
from rumormill.kernels.state import Floats, Ids, Mask, Reach


@kernel
def floor_loop(
    rounds: int,
    reach: Reach,
    masks: Mask,
    arms: Ids,
    xs: Floats,
    needs: Floats,
    n: Floats,
    total: Floats,
) -> None:
    """The deliveries of some rounds in which all agents pull the same arms and get the same rewards."""
    for _ in range(rounds):
        for hop in range(reach.gamma):
            for origin in range(arms.shape[0]):
                arm, x, need = arms[origin], xs[origin], needs[origin]
                n_k, total_k = n[arm], total[arm]
                if reach.dense[hop] >= 0:
                    mask = masks[reach.dense[hop], origin]
                    for j in range(n_k.shape[0]):
                        count = n_k[j] + mask[j]
                        n_k[j] = count
                        total_k[j] += x * mask[j] if count >= need else 0.0
                else:
                    for i in range(reach.ptr[hop, origin], reach.ptr[hop, origin + 1]):
                        j = reach.receivers[i]
                        n_k[j] += 1.0
                        if n_k[j] >= need:
                            total_k[j] += x
