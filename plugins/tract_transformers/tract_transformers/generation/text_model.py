"""A language model with its tokenizer: what users ask for text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeGuard, cast, overload

import numpy as np

from tract_core.api.given import checked_path
from tract_core.api.runnable import Runnable
from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_transformers.generation.answer import Answer
from tract_transformers.generation.asking import wishes_of
from tract_transformers.generation.drafts import MOST_DRAFTED, LookUp, ModelDraft
from tract_transformers.generation.prompt_file import SavedPrompt, identity_of, read_saved, recall_saved, save_past
from tract_transformers.generation.reading import CHUNK, read_prompt
from tract_transformers.generation.writing import Wishes, Writing
from tract_transformers.language_model.description import LanguageModel
from tract_transformers.language_model.keep import Pasts, pasts_of
from tract_transformers.language_model.past import Past
from tract_transformers.sampling.steps import whole
from tract_transformers.templates.template import ChatTemplate
from tract_transformers.tokenizers.protocol import Tokenizer

Prompt = str | Sequence[Mapping[str, Any]] | Sequence[int]
"""A text to go on with; or the turns of a conversation, each with a ``role`` and its ``content``; or tokens."""


@frozen
class AskedText:
    """A text that is wanted: the tokens of its ``prompt``, and what is asked of the answer.

    ``draft``: proposes tokens. ``saved``: what the model may have seen of the prompt.
    """

    prompt: list[int]
    wishes: Wishes
    draft: TextModel | LookUp | None = None
    saved: SavedPrompt | None = None

    def writing(self, pasts: Pasts, tokenizer: Tokenizer) -> Writing:
        """The text while it is written. ``pasts``: where the past comes from that it has, and goes at its end."""
        past, draft = pasts.past(), self.draft
        if self.saved is not None:
            recall_saved(past, self.prompt, self.saved)
        if not isinstance(draft, TextModel):
            return Writing(past, tokenizer, self.prompt, self.wishes, pasts.give_back, draft=draft)
        guessing = draft.past()

        def done(past: Past) -> None:
            pasts.give_back(past)
            draft.give_back(guessing)

        other = ModelDraft(guessing, self.wishes.sampler, self.wishes.chunk, draft.context)
        return Writing(past, tokenizer, self.prompt, self.wishes, done, draft=other)


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
        self._pasts = pasts_of(runnable, description)

    @overload
    def generate(self, prompt: Prompt, *, stream: Literal[False] = False, **wishes: Any) -> Answer: ...
    @overload
    def generate(self, prompt: Prompt, *, stream: Literal[True], **wishes: Any) -> Writing: ...
    def generate(self, prompt: Prompt, *, stream: bool = False, **wishes: Any) -> Answer | Writing:
        """What the model writes behind a text, or says in a conversation.

        ``prompt``: a text, in which special tokens count as such; or a list of messages, as ``[{"role": "user",
        "content": "Hello!"}]``, which the model's chat template writes down; or tokens, as they are. ``stream``: return
        an iterator of pieces of text, whose ``answer`` is all that was written, in place of the answer.

        Further parameters, and what they are unless given: ``max_tokens`` (256), where the answer ends at the latest.
        ``temperature`` (0.8): 0 takes the likeliest token each time. ``top_k`` (40): draw from so many; 0 for all.
        ``top_p`` (0.95): draw from the likeliest that have this probability together. ``min_p`` (0.05): leave out what
        is less than this times as likely as the likeliest. ``repetition_penalty`` (1), of what is in the prompt or the
        answer; ``presence_penalty`` (0), ``frequency_penalty`` (0), of what is in the answer. ``seed`` (a fresh one):
        the same seed gives the same answer. ``stop`` (none): texts, or one, at which the answer ends, without them.
        ``logprobs`` (none): log-probabilities of each token, and of so many of the likeliest ones. ``special``
        (``False``): special tokens that the model writes are spelled out in the text, but for those that end it.

        What the answer looks like (anything; one of these): ``schema``, of JSON, as a dictionary or a text;
        ``grammar``, in the words of the package ``llguidance``; ``regex``, an expression for the whole answer.

        ``draft`` (none): another `TextModel` with the same tokens, which proposes ``draft_tokens`` (5) at once, or
        ``"prompt"`` for tokens that were in the text before. Answers are as likely as without. ``prompt_cache`` (none):
        a file that `save_prompt` wrote.

        Raises InputError for parameters that do not exist or make no sense, for a prompt that is longer than the
        model's context, and for a grammar that is none, or no text of the model's; RunError where the model fails;
        ModelError for a file that is no prompt of this model.
        """
        writing = self.begun(prompt, **wishes)
        if stream:
            return writing
        for _ in writing:
            pass
        return writing.answer

    def begun(self, prompt: Prompt, **wishes: Any) -> Writing:
        """An answer of which nothing is written yet; else as `generate`, which says what it raises."""
        return self.asked(prompt, **wishes).writing(self._pasts, self.tokenizer)

    def asked(
        self,
        prompt: Prompt,
        *,
        draft: TextModel | Literal["prompt"] | None = None,
        draft_tokens: int = 5,
        prompt_cache: str | os.PathLike[str] | None = None,
        **wishes: Any,
    ) -> AskedText:
        """What `generate` is asked for, checked. Raises as it does."""
        whole("draft_tokens", draft_tokens, 1, MOST_DRAFTED)
        tokens = self.prompt_tokens(prompt)
        room = None if self.context is None else self.context - len(tokens)
        found = wishes_of(room, draft_tokens=draft_tokens, **wishes)
        saved = None if prompt_cache is None else read_saved(checked_path(prompt_cache), identity_of(self.runnable))
        if isinstance(draft, TextModel):
            self._check_draft(draft)
        return AskedText(tokens, found, draft if isinstance(draft, TextModel) else _look_up(draft), saved)

    def _check_draft(self, draft: TextModel) -> None:
        """Raise InputError for a model that has other tokens."""
        if draft.tokenizer.pieces() != self.tokenizer.pieces():
            raise InputError(
                "the draft has other tokens than the model", hint="take a smaller model of the same family"
            )

    def save_prompt(self, path: str | os.PathLike[str], prompt: Prompt, *, chunk: int = CHUNK) -> None:
        """Write what the model sees of a prompt into a file, for ``generate(..., prompt_cache=path)``.

        It is of use to whatever begins as ``prompt`` does. Raises InputError for what is no prompt, and for a file that
        cannot be written; RunError where the model fails.
        """
        whole("chunk", chunk, 1)
        tokens, past = self.prompt_tokens(prompt), self._pasts.past()
        if not tokens:
            raise InputError("the prompt is empty")
        read_prompt(past, tokens, chunk)
        save_past(checked_path(path), past, identity_of(self.runnable))
        self._pasts.give_back(past)

    def prompt_tokens(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt. Raises InputError for what is none, or one that is longer than the context."""
        if isinstance(prompt, str):
            found = self.tokenizer.encode(prompt, special=True)
            begin = list(self.tokenizer.begin)
            tokens = found if begin and found[: len(begin)] == begin else begin + found
        elif _are_tokens(prompt):
            tokens = _checked_tokens(prompt, self.tokenizer.size)
        else:
            tokens = self.tokenizer.encode(self.conversation(cast("Sequence[Mapping[str, Any]]", prompt)), special=True)
        if self.context is not None and len(tokens) >= self.context:
            raise InputError(f"the prompt has {len(tokens)} tokens, and the model's context is {self.context}")
        return tokens

    def conversation(self, messages: Sequence[Mapping[str, Any]], **variables: Any) -> str:
        """What the chat template writes for a conversation, up to where the model's answer begins.

        ``variables``: others that the template reads, as ``tools``. Raises InputError where the model has no template,
        and where messages are none.
        """
        if self.template is None:
            raise InputError("the model has no chat template", hint="give the prompt as one text")
        return self.template.render(messages, self.tokenizer.names, **variables)

    def past(self) -> Past:
        """A past without a token, for whoever asks the model for logits."""
        return self._pasts.past()

    def give_back(self, past: Past) -> None:
        """Nobody goes on with a past that `past` gave."""
        self._pasts.give_back(past)

    def __repr__(self) -> str:
        return f"TextModel({self.tokenizer!r}, on {self.runnable.runtime.name()})"


def _are_tokens(prompt: object) -> TypeGuard[Sequence[int]]:
    """Whether a prompt is a list of tokens; an empty one is none."""
    if not isinstance(prompt, (list, tuple)) or not prompt:
        return False
    return isinstance(cast("Sequence[object]", prompt)[0], (int, np.integer))


def _checked_tokens(prompt: Sequence[int], size: int) -> list[int]:
    """A prompt that is given as tokens, of which there are ``size``. Raises InputError for what is no token."""
    for one in prompt:
        if type(one) is bool or not isinstance(one, (int, np.integer)) or not 0 <= one < size:  # pyright: ignore[reportUnnecessaryIsInstance]: of users
            raise InputError(f"the prompt holds {one!r:.80}, wanted tokens from 0 to {size - 1}")
    return [int(one) for one in prompt]


def _look_up(draft: object) -> LookUp | None:
    """The draft that is no other model. Raises InputError for what is none."""
    if draft is None or draft == "prompt":
        return LookUp() if draft else None
    raise InputError(f"draft is {draft!r:.80}, wanted another TextModel, or 'prompt'")
