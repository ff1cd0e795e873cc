"""A language model with its tokenizer: what users ask for text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, overload

from tract_core.api.runnable import Runnable
from tract_core.errors import InputError
from tract_transformers.generation.answer import Answer
from tract_transformers.generation.stops import checked_stops
from tract_transformers.generation.writing import CHUNK, Wishes, Writing
from tract_transformers.language_model.description import LanguageModel
from tract_transformers.language_model.past import Past, StatelessPast
from tract_transformers.sampling.draw import checked_seed, fresh_seed
from tract_transformers.sampling.sampler import sampler_of
from tract_transformers.sampling.steps import whole
from tract_transformers.templates.template import ChatTemplate
from tract_transformers.tokenizers.protocol import Tokenizer

Prompt = str | Sequence[Mapping[str, Any]]
"""A text to go on with; or the turns of a conversation, each with a ``role`` and its ``content``."""

MOST_TOKENS: Final = 256
"""Of an answer, unless somebody says more."""


class TextModel:
    """Many threads may use one. It keeps what it has seen of the last text: one that begins the same goes on there."""

    def __init__(
        self,
        runnable: Runnable,
        description: LanguageModel,
        tokenizer: Tokenizer,
        *,
        template: ChatTemplate | None = None,
        context: int | None = None,
    ) -> None:
        """``context``: positions that the model was trained for; ``None`` where nobody says."""
        self.runnable = runnable
        self.description = description
        self.tokenizer = tokenizer
        self.template = template
        self.context = context
        self._idle: list[Past] = []

    @overload
    def generate(self, prompt: Prompt, *, stream: Literal[False] = False, **wishes: Any) -> Answer: ...
    @overload
    def generate(self, prompt: Prompt, *, stream: Literal[True], **wishes: Any) -> Writing: ...
    def generate(self, prompt: Prompt, *, stream: bool = False, **wishes: Any) -> Answer | Writing:
        """What the model writes behind a text, or says in a conversation.

        ``prompt``: a text, in which special tokens count as such; or a list of messages, as ``[{"role": "user",
        "content": "Hello!"}]``, which the model's chat template writes down. ``stream``: return an iterator of pieces
        of text, whose ``answer`` is all that was written, in place of the answer.

        Further parameters, and what they are unless given: ``max_tokens`` (256), where the answer ends at the latest.
        ``temperature`` (0.8): 0 takes the likeliest token each time. ``top_k`` (40): draw from so many; 0 for all.
        ``top_p`` (0.95): draw from the likeliest that have this probability together. ``min_p`` (0.05): leave out what
        is less than this times as likely as the likeliest. ``repetition_penalty`` (1), of what is in the prompt or the
        answer; ``presence_penalty`` (0), ``frequency_penalty`` (0), of what is in the answer. ``seed`` (a fresh one):
        the same seed gives the same answer. ``stop`` (none): texts, or one, at which the answer ends, without them.
        ``logprobs`` (none): log-probabilities of each token, and of so many of the likeliest ones.

        Raises InputError for parameters that do not exist or make no sense, and for a prompt that is longer than the
        model's context; RunError where the model fails.
        """
        writing = self._write(prompt, **wishes)
        if stream:
            return writing
        for _ in writing:
            pass
        return writing.answer

    def _write(
        self,
        prompt: Prompt,
        *,
        max_tokens: int = MOST_TOKENS,
        temperature: float = 0.8,
        top_k: int = 40,
        top_p: float = 0.95,
        min_p: float = 0.05,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
        logprobs: int | None = None,
        chunk: int = CHUNK,
        **unknown: Any,
    ) -> Writing:
        if unknown:
            raise InputError(f"generate has no parameter {next(iter(unknown))!r}", hint="help(TextModel.generate)")
        whole("max_tokens", max_tokens, 0)
        whole("chunk", chunk, 1)
        if logprobs is not None:
            whole("logprobs", logprobs, 0)
        seed = fresh_seed() if seed is None else checked_seed(seed)
        sampler = sampler_of(
            seed=seed,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
        )
        tokens = self.prompt_tokens(prompt)
        room = max_tokens if self.context is None else min(max_tokens, self.context - len(tokens))
        wishes = Wishes(sampler, seed, room, checked_stops(stop), logprobs, chunk)
        return Writing(self._taken_past(), self.tokenizer, tokens, wishes, self._give_back)

    def prompt_tokens(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt. Raises InputError for what is none, or one that is longer than the context."""
        if isinstance(prompt, str):
            found = self.tokenizer.encode(prompt, special=True)
            begin = list(self.tokenizer.begin)
            tokens = found if begin and found[: len(begin)] == begin else begin + found
        else:
            tokens = self.tokenizer.encode(self.conversation(prompt), special=True)
        if self.context is not None and len(tokens) >= self.context:
            raise InputError(f"the prompt has {len(tokens)} tokens, and the model's context is {self.context}")
        return tokens

    def conversation(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """What the chat template writes for a conversation, up to where the model's answer begins.

        Raises InputError where the model has none, and where messages are none.
        """
        if self.template is None:
            raise InputError("the model has no chat template", hint="give the prompt as one text")
        return self.template.render(messages, self.tokenizer.names)

    def past(self) -> Past:
        """A past without a token, for whoever asks the model for logits."""
        return StatelessPast(self.runnable, self.description)

    def _taken_past(self) -> Past:
        try:
            return self._idle.pop()
        except IndexError:
            return self.past()

    def _give_back(self, past: Past) -> None:
        self._idle = [past]

    def __repr__(self) -> str:
        return f"TextModel({self.tokenizer!r}, on {self.runnable.runtime.name()})"
