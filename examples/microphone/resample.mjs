// Sound at another rate, piece by piece; and, in an AudioWorklet, the two ends of a stream: "listener" and "player".

const LOBES = 16; // of the windowed sinc, to each side

export class Resampler {
  // from, to: samples per second. What is above half of the lower rate is left out.
  constructor(from, to) {
    this.step = from / to;
    const cutoff = Math.min(1, to / from) * 0.92;
    this.half = Math.ceil(LOBES / cutoff);
    this.weight = (x) => {
      if (Math.abs(x) >= this.half) return 0;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * cutoff * x) / (Math.PI * cutoff * x);
      return cutoff * sinc * Math.cos((Math.PI * x) / (2 * this.half)) ** 2;
    };
    this.held = new Float32Array(this.half); // the sound begins after silence
    this.place = this.half; // of the next sample that comes out, in those that are held
  }

  push(samples) {
    const held = new Float32Array(this.held.length + samples.length);
    held.set(this.held);
    held.set(samples, this.held.length);
    const found = [];
    for (; this.place + this.half < held.length; this.place += this.step) {
      let sum = 0;
      const first = Math.ceil(this.place - this.half), last = Math.floor(this.place + this.half);
      for (let index = Math.max(first, 0); index <= last; index++) sum += held[index] * this.weight(index - this.place);
      found.push(sum);
    }
    const gone = Math.max(Math.floor(this.place) - this.half, 0);
    this.held = held.slice(gone);
    this.place -= gone;
    return Float32Array.from(found);
  }
}

if (globalThis.registerProcessor) {
  class Listener extends AudioWorkletProcessor { // from the microphone to the page, at the rate of the model
    constructor({ processorOptions: { rate, chunk } }) {
      super();
      Object.assign(this, { chunk, waiting: [], resampler: new Resampler(sampleRate, rate) });
    }

    process([[channel]]) {
      if (channel) this.waiting.push(...this.resampler.push(channel));
      while (this.waiting.length >= this.chunk) this.port.postMessage(Float32Array.from(this.waiting.splice(0, this.chunk)));
      return true;
    }
  }

  class Player extends AudioWorkletProcessor { // from the page to the speaker
    constructor({ processorOptions: { rate, ahead } }) {
      super();
      Object.assign(this, { queue: [], plays: false, resampler: new Resampler(rate, sampleRate) });
      this.port.onmessage = ({ data }) => {
        this.queue.push(...this.resampler.push(data));
        if (this.queue.length > ahead * sampleRate) this.plays = true; // so much waits, so that a late piece is no gap
        if (this.queue.length > sampleRate) this.queue.splice(0, this.queue.length - ahead * sampleRate);
      };
    }

    process(_, [[channel]]) {
      if (!this.plays) return true;
      const piece = this.queue.splice(0, channel.length);
      channel.set(piece);
      if (piece.length < channel.length) this.plays = false;
      return true;
    }
  }

  registerProcessor("listener", Listener);
  registerProcessor("player", Player);
}
