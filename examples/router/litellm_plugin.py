"""A routing strategy for LiteLLM's Router: the node beside the gateway chooses the deployment of a request.

    router = Router(model_list=[... "model_info": {"id": "birch"} ...])
    install(router, Guard("http://127.0.0.1:7480", "chat"), FirstToken(timeout=30.0))

The arms of the game are the ids of the deployments. LiteLLM's cooldowns, retries and fallbacks stay in force:
every attempt is a decision of its own. While the node is away, deployments are taken at random, by weight.
`classify` names the request class, where the game has classes: each class learns by itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

import litellm
from guard import Guard
from litellm.integrations.custom_logger import CustomLogger
from litellm.router import CustomRoutingStrategyBase, Router

from rumormill.live.io.client import Chosen
from rumormill.recipes import FirstToken

Classify = Callable[[str, list[dict[str, Any]]], str | None]
"""The request class of a model name and messages."""


class NodeStrategy(CustomRoutingStrategyBase, CustomLogger):  # type: ignore[misc]
    """Asks the node for a deployment and reports what the request cost."""

    def __init__(
        self, router: Router, guard: Guard, recipe: FirstToken, classify: Classify | None = None
    ) -> None:
        super().__init__()
        self.router, self.guard, self.recipe, self.classify = router, guard, recipe, classify
        # Tokens of decisions stand under this key in the metadata of a request. LiteLLM calls all loggers for
        # every router of a process, and takes two of one class with equal texts for the same.
        self.mark = f"rumormill-{id(self)}"

    async def async_get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        healthy = await self.router.async_get_healthy_deployments(
            model=model,
            request_kwargs=request_kwargs or {},
            messages=messages,
            input=input,
            specific_deployment=specific_deployment,
        )
        if not isinstance(healthy, list) or request_kwargs is None:
            return healthy if not isinstance(healthy, list) else by_weight(healthy)
        choice = await self.guard.achoose(*self._asked(model, messages, healthy))
        return self._taken(healthy, choice, request_kwargs) or by_weight(healthy)

    def get_available_deployment(
        self,
        model: str,
        messages: list[dict[str, str]] | None = None,
        input: str | list[Any] | None = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        own = Router.get_available_deployment(
            self.router, model, messages, input, specific_deployment, request_kwargs
        )
        found = self.router._get_healthy_deployments(model, None)
        if specific_deployment or not isinstance(found, tuple) or request_kwargs is None:
            return own
        choice = self.guard.choose(*self._asked(model, messages, found[0]))
        return self._taken(found[0], choice, request_kwargs) or own

    def _asked(self, model: str, messages: Any, healthy: list[Any]) -> tuple[list[str], str | None]:
        """The arms that are allowed, and the class of the request."""
        class_ = None if self.classify is None else self.classify(model, messages or [])
        return [each["model_info"]["id"] for each in healthy], class_

    def _taken(self, healthy: list[Any], choice: Chosen | None, request: dict[str, Any]) -> Any:
        """The deployment that the node chose, its token put into the request; None without a choice."""
        for deployment in healthy:
            if choice is not None and deployment["model_info"]["id"] == choice.arm:
                tokens = request.setdefault("metadata", {}).setdefault(self.mark, {})
                tokens.setdefault(choice.arm, []).append(choice.token)
                return deployment
        return None

    # --- what became of it: LiteLLM calls these after every attempt -------------------------------------

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    async def async_log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        self.log_failure_event(kwargs, response_obj, start_time, end_time)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        first = kwargs.get("completion_start_time") if kwargs.get("stream") else end_time
        self._report(kwargs, start_time, first or end_time, dollars=kwargs.get("response_cost") or 0.0)

    def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        late = isinstance(kwargs.get("exception"), litellm.Timeout)
        self._report(kwargs, start_time, None if late else end_time, failed=True)

    def _report(self, kwargs: Any, start: datetime, end: datetime | None, **more: Any) -> None:
        given = kwargs.get("litellm_params", {})
        tokens = (
            (given.get("metadata") or {}).get(self.mark, {}).get((given.get("model_info") or {}).get("id"))
        )
        if tokens:  # the attempts of one request at one deployment end in the order in which they began
            token = tokens.pop(0)
            seconds = None if end is None else max(0.0, (end - start).total_seconds())
            self.guard.report(token, self.recipe.value(seconds, **more))


def by_weight(healthy: list[Any]) -> Any:
    """A deployment at random, by the weights of the model list: the rule while the node is away."""
    weights = [float(each["litellm_params"].get("weight") or 1.0) for each in healthy]
    return random.choices(healthy, weights)[0]


def install(
    router: Router, guard: Guard, recipe: FirstToken, classify: Classify | None = None
) -> NodeStrategy:
    """Let the node decide for a router, and report to it what every request cost."""
    strategy = NodeStrategy(router, guard, recipe, classify)
    router.set_custom_routing_strategy(strategy)
    litellm.callbacks.append(strategy)
    return strategy
