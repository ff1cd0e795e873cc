"""The public names, and where they are from."""

from tract_transformers.generation.answer import Answer as Answer
from tract_transformers.generation.embedding import TextEmbedder as TextEmbedder
from tract_transformers.generation.embedding import load_embedder as load_embedder
from tract_transformers.generation.engine import Engine as Engine
from tract_transformers.generation.engine import EngineText as EngineText
from tract_transformers.generation.loading import load as load
from tract_transformers.generation.reranking import TextReranker as TextReranker
from tract_transformers.generation.reranking import load_reranker as load_reranker
from tract_transformers.generation.speech.loading import load_speech as load_speech
from tract_transformers.generation.speech.model import SpeechModel as SpeechModel
from tract_transformers.generation.speech.transcript import Segment as Segment
from tract_transformers.generation.speech.transcript import Transcript as Transcript
from tract_transformers.generation.text_model import TextModel as TextModel
from tract_transformers.generation.text_to_text import TextToText as TextToText
from tract_transformers.generation.writing import Writing as Writing
