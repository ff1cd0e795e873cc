"""What a model wrote."""

from __future__ import annotations

from typing import Any, Literal

from tract_core.frozen import frozen
from tract_transformers.sampling.sampler import TokenChance

Finish = Literal["stop", "length", "interrupted"]


@frozen
class Answer:
    """``str(answer)`` is ``answer.text``.

    ``tokens``: those that were written, without one that ends an answer; where a stop text was found, the text may end
    before them. ``finish_reason``: ``stop`` where the model ended or a stop text came, ``length`` where ``max_tokens``
    or the model's context was full, ``interrupted`` where the caller left. ``seed``: with which the same comes again.
    ``prompt_tokens``: how many tokens were in front. ``logprobs``: for each token, where they were asked for.
    ``prompt_seconds``, ``answer_seconds``: how long it took to the first token, and for the others. ``cached_tokens``:
    how many of those in front were not read again, as the model had seen them before.
    """

    text: str
    tokens: tuple[int, ...]
    finish_reason: Finish
    prompt_tokens: int
    seed: int
    logprobs: tuple[TokenChance, ...] | None = None
    prompt_seconds: float = 0.0
    answer_seconds: float = 0.0
    cached_tokens: int = 0

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """The fields, for JSON; log-probabilities where there are any."""
        fields = ("text", "finish_reason", "prompt_tokens", "seed", "prompt_seconds", "answer_seconds")
        found: dict[str, Any] = {name: getattr(self, name) for name in fields}
        found["tokens"] = list(self.tokens)
        if self.logprobs is not None:
            found["logprobs"] = [
                {"token": one.token, "logprob": one.logprob, "likeliest": [list(pair) for pair in one.likeliest]}
                for one in self.logprobs
            ]
        return found
