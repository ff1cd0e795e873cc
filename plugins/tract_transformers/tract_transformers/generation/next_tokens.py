"""Which tokens come behind a prompt, one after the other: from the model alone, or several that a draft proposed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_transformers.generation.reading import read_rest, recall_prompt
from tract_transformers.language_model.past import Past
from tract_transformers.sampling.counts import Counts
from tract_transformers.sampling.grammar import Matching
from tract_transformers.sampling.sampler import Sampler
from tract_transformers.sampling.speculative import Proposal, decide
from tract_transformers.sampling.steps import Logits


@frozen
class Chosen:
    """A ``token``, and the ``logits`` [V] that it was chosen by: the model's own, but for what a grammar forbids."""

    token: int
    logits: Logits


class TextSoFar:
    """A prompt and the answer so far, with what choosing the next token asks of them.

    ``tokens``: all of them. ``counts``: how often each is there. ``ends``: the tokens that end answers.
    """

    def __init__(self, prompt: Sequence[int], ends: frozenset[int], size: int, matching: Matching | None) -> None:
        """``size``: how many tokens there are; there may be more logits. ``matching``: of the answer."""
        self.tokens = list(prompt)
        self.counts = Counts(prompt)
        self.ends = ends
        self._size = size
        self._matching = matching
        self._is_ended = False

    def logits(self, row: Logits) -> Logits:
        """Those of the next token, from a row that a model gave. Raises InputError where a grammar allows none."""
        row = row[: self._size]  # many a model has more rows than there are tokens
        return row if self._matching is None else self._matching.masked(row)

    def add(self, token: int) -> None:
        """The next token."""
        self.tokens.append(token)
        self.counts.add(token)
        self._is_ended = token in self.ends
        if self._matching is not None and not self._is_ended:
            self._matching.add(token)

    def take_back(self, length: int) -> None:
        """Only the first ``length`` tokens stay, of which none ended the answer."""
        gone = self.tokens[length:]
        del self.tokens[length:]
        for token in gone:
            self.counts.take_back(token)
        self._is_ended = False
        if self._matching is not None:
            self._matching.take_back(sum(token not in self.ends for token in gone))

    @property
    def is_whole(self) -> bool:
        """Whether nothing can come any more: an end came, or a grammar wants no more."""
        return self._is_ended or (self._matching is not None and self._matching.is_whole)


class NextTokens(Iterator[Chosen]):
    """The tokens of an answer, up to the one that ends it, or to where a grammar wants no more."""

    def __init__(self, past: Past, text: TextSoFar, sampler: Sampler, chunk: int) -> None:
        """``past``: a fresh one, or one whose text may begin as that of ``text`` does. ``chunk``: of the prompt."""
        self._past = past
        self._text = text
        self._sampler = sampler
        self._chunk = chunk
        self._begun = False
        self.recalled = 0
        """How many tokens of the prompt were not read again, once the first token is there."""

    def __next__(self) -> Chosen:
        """The next one. Raises RunError where the model fails, InputError where a grammar allows no token."""
        if self._text.is_whole:
            raise StopIteration
        if self._begun:
            row = self._past.extend(self._text.tokens[-1:])[-1]
        else:
            self.recalled = recall_prompt(self._past, self._text.tokens)
            row = read_rest(self._past, self._text.tokens, self._chunk)
        self._begun = True
        return self._chosen(row)

    @property
    def is_done(self) -> bool:
        """Whether no token comes any more."""
        return self._text.is_whole

    def _chosen(self, row: Logits) -> Chosen:
        logits = self._text.logits(row)
        token = self._sampler(logits, self._text.counts)
        self._text.add(token)
        return Chosen(token, logits)


class Draft(Protocol):
    """What guesses how a text goes on."""

    def propose(self, text: TextSoFar, count: int) -> list[Proposal]:
        """Up to ``count`` tokens that may come next, in order. ``text`` is afterwards what it was."""
        ...


class DraftedTokens(NextTokens):
    """The same, where a draft proposes tokens, which the model looks at in one step."""

    def __init__(
        self, past: Past, text: TextSoFar, sampler: Sampler, chunk: int, *, draft: Draft, count: int, most: int
    ) -> None:
        """``count``: tokens that are proposed at once. ``most``: how long the text may become."""
        super().__init__(past, text, sampler, chunk)
        self._draft = draft
        self._count = count
        self._most = most
        self._ready: deque[Chosen] = deque()

    def __next__(self) -> Chosen:
        """As of `NextTokens`. Raises InputError too where the model gives the logits of too few tokens."""
        if self._ready:
            return self._ready.popleft()
        if not self._begun or self._text.is_whole:
            return super().__next__()
        count = min(self._count, self._most - len(self._text.tokens) - 1)
        proposals = self._draft.propose(self._text, count) if count > 0 else []
        if not proposals:
            return super().__next__()
        self._take(proposals)
        return self._ready.popleft()

    @property
    def is_done(self) -> bool:
        """Whether no token comes any more."""
        return not self._ready and super().is_done

    def _take(self, proposals: list[Proposal]) -> None:
        """Have the model see what is proposed, up to the first token that is not accepted, and choose one more."""
        text, length = self._text, len(self._text.tokens)
        given = [text.tokens[-1], *(one.token for one in proposals)]
        rows = self._past.extend(given, every=True)
        if len(rows) < len(given):
            problem = f"the model gives the logits of {len(rows)} tokens, and a draft needs {len(given)}"
            raise InputError(problem, hint="give a smaller draft_tokens, or load the model by tract_transformers.load")
        for proposal, row in zip(proposals, rows[-len(given) :], strict=False):
            logits = text.logits(row)
            token = decide(self._sampler, logits, text.counts, proposal)
            text.add(token)
            self._ready.append(Chosen(token, logits))
            if token != proposal.token or text.is_whole:
                break
        else:
            self._ready.append(self._chosen(rows[-1]))
        self._past.truncate(length + len(self._ready) - 1)
