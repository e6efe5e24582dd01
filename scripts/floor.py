"""The floor that `make bench` measures against: count, compare and add for every delivery, nothing else."""

from __future__ import annotations

from rumormill.kernels.jit import kernel
from rumormill.kernels.state import Floats, Hearing, Ids, Mask


@kernel
def floor_loop(
    rounds: int,
    hearing: Hearing,
    masks: Mask,
    arms: Ids,
    xs: Floats,
    needs: Floats,
    n: Floats,
    total: Floats,
) -> None:
    """The deliveries of some rounds in which everybody pulls the same arms and gets the same rewards."""
    for _ in range(rounds):
        for hop in range(hearing.gamma):
            for origin in range(arms.shape[0]):
                arm, x, need = arms[origin], xs[origin], needs[origin]
                n_k, total_k = n[arm], total[arm]
                if hearing.dense[hop] >= 0:
                    mask = masks[hearing.dense[hop], origin]
                    for j in range(n_k.shape[0]):
                        count = n_k[j] + mask[j]
                        n_k[j] = count
                        total_k[j] += x * mask[j] if count >= need else 0.0
                else:
                    for i in range(hearing.ptr[hop, origin], hearing.ptr[hop, origin + 1]):
                        j = hearing.hearers[i]
                        n_k[j] += 1.0
                        if n_k[j] >= need:
                            total_k[j] += x
