"""What the page does, without a browser: a WAV file goes through the model as it would come from a microphone.

``python examples/microphone/client.py NOISY.wav CLEAN.wav``: of 8000 Hz and 16 bits, while `serve.py` runs.
"""

from __future__ import annotations

import json
import sys
import wave

from websockets.sync.client import connect

ADDRESS = "ws://localhost:8000/v2/models/denoise/stream"
RATE = 8000
CHUNK = 400
"""Bytes that are sent at a time: 200 samples."""


def cleaned(sound: bytes, address: str = ADDRESS) -> bytes:
    """Samples of 16 bits without the noise, as many as there were. Raises RuntimeError with what the server says."""
    pieces = list[bytes]()
    with connect(address) as server:
        server.send(json.dumps({"datatype": "INT16"}))
        check(server.recv())
        for begin in range(0, len(sound), CHUNK):
            server.send(sound[begin : begin + CHUNK])
        server.send(json.dumps({"end": True}))
        while isinstance(message := server.recv(), bytes):
            pieces.append(message)
        check(message)
    return b"".join(pieces)


def check(message: str | bytes) -> None:
    """Raises RuntimeError where the server says that something went wrong."""
    told = json.loads(message)
    if "error" in told:
        raise RuntimeError(told["error"])


def main() -> None:
    with wave.open(sys.argv[1]) as source, wave.open(sys.argv[2], "wb") as target:
        if (source.getnchannels(), source.getsampwidth(), source.getframerate()) != (1, 2, RATE):
            sys.exit(f"{sys.argv[1]}: wanted one channel of 16 bits at {RATE} Hz")
        target.setparams(source.getparams())
        target.writeframes(cleaned(source.readframes(source.getnframes()), *sys.argv[3:]))


if __name__ == "__main__":
    main()
