"""A gateway of the demonstration: LiteLLM's Router with one routing rule, under load."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no network

import litellm
import openai
from fleet import FLEET
from guard import Guard
from litellm import Router
from litellm_plugin import install
from load import drive

from rumormill.recipes import FirstToken

PRELOAD = "ROUTER_PRELOAD"
"""Set in the environment of the process that forks the gateways."""


@dataclass(frozen=True)
class Task:
    """What one gateway has to do."""

    rule: str
    """rumormill, or one of LiteLLM's: lowest latency, random, weighted."""
    name: str
    node: str
    ports: Sequence[int]
    """Of the providers."""
    rate: float
    seconds: float
    seed: int
    timeout: float
    seconds_per_dollar: float
    out: Path


def model_list(ports: Sequence[int], weights: dict[str, float] | None = None) -> list[dict[str, Any]]:
    """The fleet as deployments of one model."""
    return [
        {
            "model_name": "chat",
            "litellm_params": {
                "model": f"openai/{provider.name}",
                "api_base": f"http://127.0.0.1:{port}/v1",
                "api_key": "none",
                **({} if weights is None else {"weight": weights[provider.name]}),
            },
            "model_info": {
                "id": provider.name,
                "input_cost_per_token": provider.dollars_per_million / 1e6,
                "output_cost_per_token": provider.dollars_per_million / 1e6,
            },
        }
        for provider, port in zip(FLEET, ports, strict=True)
    ]


def make_router(task: Task) -> Router:
    """LiteLLM's Router with its defaults and two retries; only the rule differs."""
    strategy = "latency-based-routing" if task.rule == "lowest latency" else "simple-shuffle"
    weights = {each.name: 1 / each.typical for each in FLEET} if task.rule == "weighted" else None
    return Router(
        model_list=model_list(task.ports, weights),
        routing_strategy=strategy,
        num_retries=2,
        timeout=task.timeout,
        stream_timeout=task.timeout,
    )


def preload() -> None:
    """What LiteLLM imports and reads at its first request; processes that are forked later have it."""
    logging.disable(logging.WARNING)
    make_router(Task("lowest latency", "", "", range(len(FLEET)), 1.0, 1.0, 1, 1.0, 0.0, Path()))
    openai.AsyncOpenAI(api_key="none").chat.completions  # noqa: B018
    litellm.token_counter("openai/none", text="Sing!")


async def serve(task: Task, began: Callable[[], float]) -> dict[str, Any]:
    """Route requests until the end; what was seen. `began` waits for the others and says when it begins."""
    router = make_router(task)
    with contextlib.suppress(Exception):  # what LiteLLM imports at its first request
        await litellm.acompletion(
            "openai/none", [], api_base="http://127.0.0.1:1/v1", api_key="none", max_retries=0
        )
    guard = None
    if task.rule == "rumormill":
        guard = Guard(task.node)
        recipe = FirstToken(
            timeout=task.timeout, failure=task.timeout / 20, seconds_per_dollar=task.seconds_per_dollar
        )
        install(router, guard, recipe)
    faults: dict[str, int] = {}

    async def send(key: str) -> float | None:
        began, first = time.perf_counter(), None
        try:
            stream = await router.acompletion(
                model="chat", messages=[{"role": "user", "content": key}], stream=True
            )
            async for part in stream:
                if first is None and part.choices and part.choices[0].delta.content:
                    first = time.perf_counter() - began
        except Exception as error:  # the demonstration counts whatever a caller would see
            faults[type(error).__name__] = faults.get(type(error).__name__, 0) + 1
            return None
        return first

    start = began()
    rows = await drive(
        send, task.name, rate=task.rate, start=start, until=start + task.seconds, seed=task.seed
    )
    await asyncio.sleep(0.5)  # LiteLLM logs after the answer
    found: dict[str, Any] = {"rows": rows, "faults": faults}
    if guard is not None:
        await guard.aclose()
        found |= {"counts": dict(guard.counts), "choose": list(guard.seconds)}
    return found


def run(task: Task, barrier: Barrier, begin: Any) -> None:
    """A process: it gets ready, waits for the others, and begins at the moment that `begin` holds then."""

    def began() -> float:
        barrier.wait(120)
        return float(begin.value)

    logging.disable(logging.WARNING)
    litellm.suppress_debug_info = True
    found = asyncio.run(serve(task, began))
    task.out.write_text(json.dumps(found), encoding="utf-8")


if PRELOAD in os.environ:
    preload()
