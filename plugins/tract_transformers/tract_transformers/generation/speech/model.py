"""A model of speech with its tokenizer: what users ask to write down what is said."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy.typing as npt

from tract_core.api.given import checked_path
from tract_core.api.runnable import Runnable
from tract_core.errors import CorruptModel, InputError
from tract_core.frozen import frozen
from tract_transformers.audio.resampling import resampled
from tract_transformers.audio.spectrum import FrontEnd
from tract_transformers.audio.waves import Samples, Sound, read_wave, sound_of
from tract_transformers.generation.asking import wishes_of
from tract_transformers.generation.speech.rules import Rules
from tract_transformers.generation.speech.tokens import SpeechTokens, TimedTokenizer
from tract_transformers.generation.speech.transcript import Segment, Transcript, Window, window_of
from tract_transformers.generation.writing import Wishes, Writing
from tract_transformers.language_model.encoded import EncodedPast, EncodedPasts, description_of_decoder
from tract_transformers.language_model.past import Array
from tract_transformers.tokenizers.protocol import Tokenizer

Heard = str | os.PathLike[str] | npt.NDArray[Any] | Sequence[float]
"""The path of a file of waves; or samples of one channel, or samples,channels."""

_SHORTEST: Final = 0.1
"""Seconds at the end of a long sound that are not worth a window of their own."""


class RuledPast:
    """A past whose logits say which tokens may come; else as that of `EncodedPast`."""

    def __init__(self, past: EncodedPast, rules: Rules) -> None:
        self._past, self._rules = past, rules
        self.recall, self.truncate, self.close = past.recall, past.truncate, past.close
        self.freeze, self.thaw = past.freeze, past.thaw

    @property
    def tokens(self) -> Sequence[int]:
        """What was seen so far."""
        return self._past.tokens

    def extend(self, tokens: Sequence[int], *, every: bool = False) -> Array:
        """As the protocol says, of the last one alone."""
        row = self._past.extend(tokens, every=every)[-1]
        return self._rules(self._past.tokens, row)[None]


@frozen
class AskedSound:
    """What is asked of a sound, and the tokens of the ``prompt`` that ask it.

    ``samples``: at the model's rate. ``language``: in which it is said. ``timed``: whether the model is to say when.
    ``wishes``: of each window.
    """

    samples: Samples
    language: str
    prompt: tuple[int, ...]
    timed: bool
    wishes: Wishes


class SpeechModel:
    """Writes down what is said. Many threads may use one."""

    def __init__(
        self,
        encoder: Runnable,
        decoder: Runnable,
        tokenizer: Tokenizer,
        tokens: SpeechTokens,
        front_end: FrontEnd,
        *,
        context: int,
    ) -> None:
        """``front_end``: what the encoder is given. ``context``: tokens that the decoder has room for.

        Raises ModelError for models that do not fit that.
        """
        description = description_of_decoder(decoder)
        self.encoder, self.runnable = encoder, decoder
        self.tokens, self.front_end, self.context = tokens, front_end, context
        self._pasts = EncodedPasts(encoder, decoder, description)
        self._vocabulary = description.vocabulary or 0
        self.tokenizer = TimedTokenizer(tokenizer, tokens, self._vocabulary)
        shape = encoder.input_fact(0).typed.shape
        wanted = (front_end.bands, front_end.frames)
        if len(shape) != 3 or shape[1:] != wanted:
            problem = f"the encoder takes {shape}, and preprocessor_config.json makes {wanted[0]} bands of {wanted[1]}"
            raise CorruptModel(f"{problem} frames")
        strange = [one for one in (tokens.start, tokens.end, tokens.untimed) if one >= self._vocabulary]
        if strange:
            raise CorruptModel(f"token {strange[0]} is outside the model's vocabulary of {self._vocabulary}")

    def transcribe(
        self,
        audio: Heard,
        *,
        rate: int | None = None,
        language: str | None = None,
        task: str = "transcribe",
        timestamps: bool = False,
        **wishes: Any,
    ) -> Transcript:
        """What is said in ``audio``.

        ``audio``: the path of a file of waves (WAV), or samples, of which ``rate`` says how many there are a second;
        several channels are mixed. ``language``: as ``"en"``; unless given, the model says it, by the first window.
        ``task``: ``"translate"`` writes English, whatever is said. ``timestamps``: have the model say when each part is
        said. Sound that is longer than a window of the model (30 s) has these in any case: each window begins where the
        last whole part of the one before it ended.

        Further parameters are those of `TextModel.generate` that a decoder knows, ``temperature`` 0 unless given.

        Raises InputError for what is no sound or no file of it, for not-a-number, and for parameters that do not exist
        or make no sense; RunError where the model fails.
        """
        asked = self._asked(self._samples(audio, rate), language, task, timed=timestamps, wishes=wishes)
        segments = tuple(self._segments(asked))
        text = "".join(one.text for one in segments).strip()
        return Transcript(text, asked.language, segments)

    def segments(
        self,
        audio: Heard,
        *,
        rate: int | None = None,
        language: str | None = None,
        task: str = "transcribe",
        timestamps: bool = False,
        **wishes: Any,
    ) -> Iterator[Segment]:
        """The parts of `Transcript`, each as soon as it is there. The parameters are those of `transcribe`."""
        return self._segments(self._asked(self._samples(audio, rate), language, task, timed=timestamps, wishes=wishes))

    def language_of(self, audio: Heard, *, rate: int | None = None) -> str:
        """The language of the first window of a sound, as the model has it. Raises as `transcribe` does."""
        return self._language(self._samples(audio, rate))

    def _asked(
        self, samples: Samples, language: str | None, task: str, *, timed: bool, wishes: Mapping[str, Any]
    ) -> AskedSound:
        known = next(iter(self.tokens.languages), None)
        self.tokens.prompt(known if language is None else language, task, timed=timed)  # before anything takes long
        timed = timed or len(samples) > self.front_end.samples
        if self._vocabulary <= self.tokens.first_time:
            timed = False
        language = self._language(samples) if language is None else language
        prompt = self.tokens.prompt(language, task, timed=timed)
        context = max(self.context - len(prompt), 0)
        given: dict[str, Any] = {"temperature": 0, "max_tokens": context, **wishes}
        asked = wishes_of(context, **given)
        return AskedSound(samples, language, tuple(prompt), timed, asked)

    def _samples(self, audio: Heard, rate: int | None) -> Samples:
        """The samples of a sound, at the model's rate."""
        if isinstance(audio, (str, os.PathLike)):
            if rate is not None:
                raise InputError("a file says its rate itself", hint="leave rate away")
            sound: Sound = read_wave(checked_path(audio))
        else:
            sound = sound_of(audio, rate)
        return resampled(sound.samples, sound.rate, self.front_end.rate)

    def _language(self, samples: Samples) -> str:
        known = self.tokens.languages
        if not known:
            return "en"
        past = self._past(samples)
        try:
            logits = past.extend([self.tokens.start])[-1]
        finally:
            self._pasts.give_back(past)
        return max(known, key=lambda name: (logits[known[name]], name))

    def _past(self, samples: Samples) -> EncodedPast:
        return self._pasts.past_of(lambda: self.front_end.features(samples[: self.front_end.samples]))

    def _segments(self, asked: AskedSound) -> Iterator[Segment]:
        rate, length = self.front_end.rate, self.front_end.samples
        begin = 0
        while begin == 0 or len(asked.samples) - begin > _SHORTEST * rate:
            window = self._window(asked, asked.samples[begin : begin + length], begin / rate)
            yield from window.segments
            begin += max(round(window.seconds * rate), 1)

    def _window(self, asked: AskedSound, samples: Samples, begin: float) -> Window:
        """What is said in a part of a sound that is not longer than a window."""
        past = self._past(samples)
        ruled = RuledPast(past, Rules(self.tokens, len(asked.prompt), asked.timed))
        writing = Writing(ruled, self.tokenizer, asked.prompt, asked.wishes, lambda _: self._pasts.give_back(past))
        for _ in writing:
            pass
        answer, seconds = writing.answer, len(samples) / self.front_end.rate
        if asked.timed:
            return window_of(answer.tokens, begin, seconds, self.tokens, self.tokenizer)
        end = round(begin + seconds, 2)
        return Window((Segment(round(begin, 2), end, answer.text, answer.tokens),), seconds)

    def __repr__(self) -> str:
        return f"SpeechModel({self.tokenizer!r}, on {self.runnable.runtime.name()})"
