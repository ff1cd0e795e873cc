// A microphone on its way to a model and back: one WebSocket, in which samples go in and come out.

const RATE = 8000; // samples per second that the model was trained on
const CHUNK = 200; // samples that are sent at a time: 25 ms
const AHEAD = 0.12; // seconds of sound that wait to be played
const SHOWN = 4; // seconds of sound that are drawn

const said = document.getElementById("said"), button = document.getElementById("button"), heard = document.getElementById("heard");
const rows = { before: row("before"), after: row("after") };
let running;

function row(name) {
  const canvas = document.querySelector(`#${name} canvas`);
  return { canvas, context: canvas.getContext("2d"), meter: document.querySelector(`#${name} meter`), pieces: [], count: 0 };
}

function take(name, piece) {
  const one = rows[name];
  one.pieces.push(piece);
  one.count += piece.length;
  const power = piece.reduce((sum, x) => sum + x * x, 0) / Math.max(piece.length, 1);
  one.meter.value = Math.max(-60, 10 * Math.log10(power + 1e-9)); // decibels below the loudest
  if (heard.value === name) running?.player.port.postMessage(piece);
}

function whole({ pieces, count }) {
  const found = new Float32Array(count);
  let at = 0;
  for (const piece of pieces) { found.set(piece, at); at += piece.length; }
  return found;
}

function since(one, begin) { // what there is from a sample on
  let from = one.pieces.length, at = one.count;
  while (from > 0 && at > begin) at -= one.pieces[--from].length;
  return whole({ pieces: one.pieces.slice(from), count: one.count - at }).subarray(Math.max(begin - at, 0));
}

function draw() { // both from the same sample on
  const begin = Math.max(rows.before.count - SHOWN * RATE, 0);
  for (const one of Object.values(rows)) {
    const { canvas: { width, height }, context } = one, sound = since(one, begin), each = (SHOWN * RATE) / width;
    context.clearRect(0, 0, width, height);
    context.beginPath();
    for (let x = 0; x < width && x * each < sound.length; x++) {
      const piece = sound.subarray(x * each, (x + 1) * each);
      const low = piece.reduce((a, b) => Math.min(a, b), 0), high = piece.reduce((a, b) => Math.max(a, b), 0);
      context.moveTo(x + 0.5, (height / 2) * (1 - high) - 0.5);
      context.lineTo(x + 0.5, (height / 2) * (1 - low) + 0.5);
    }
    context.stroke();
  }
  if (running) requestAnimationFrame(draw);
}

function connected() { // a WebSocket that has been greeted
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v2/models/denoise/stream`);
  socket.binaryType = "arraybuffer";
  return new Promise((resolve, reject) => {
    socket.onopen = () => socket.send("{}");
    socket.onerror = () => reject(new Error("the server is not reached"));
    socket.onmessage = ({ data }) => {
      const told = JSON.parse(data);
      if (told.error) reject(new Error(told.error)); else resolve(socket);
    };
  });
}

async function start() {
  for (const one of Object.values(rows)) Object.assign(one, { pieces: [], count: 0 });
  const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const microphone = await navigator.mediaDevices.getUserMedia({ audio });
  const context = new AudioContext();
  await context.audioWorklet.addModule("resample.mjs");
  const options = { processorOptions: { rate: RATE, chunk: CHUNK, ahead: AHEAD } };
  const listener = new AudioWorkletNode(context, "listener", { ...options, numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
  const player = new AudioWorkletNode(context, "player", { ...options, numberOfInputs: 0 });
  player.connect(context.destination);
  const socket = await connected();
  running = { microphone, context, socket, player };
  socket.onmessage = ({ data }) => typeof data === "string" ? ended(JSON.parse(data)) : take("after", new Float32Array(data));
  socket.onclose = () => stopped();
  listener.port.onmessage = ({ data }) => {
    if (!running || running.isEnding || socket.bufferedAmount > RATE * 4 * 10) return; // a connection that is too slow
    take("before", data);
    socket.send(data);
  };
  context.createMediaStreamSource(microphone).connect(listener);
  said.textContent = "Speak, or play a melody.";
  button.textContent = "Stop";
  document.body.dataset.state = "listening";
  draw();
}

function stop() { // the rest of the sound is still to come
  running.isEnding = true;
  running.socket.send('{"end": true}');
}

function ended(told) {
  said.textContent = told.error ?? `${rows.before.count / RATE} seconds came in, and ${rows.after.count / RATE} seconds came out.`;
  document.body.dataset.state = told.error ? "failed" : "ended";
}

function stopped() {
  running?.microphone.getTracks().forEach((track) => track.stop());
  running?.context.close();
  running = undefined;
  button.textContent = "Start";
  document.querySelectorAll("figcaption button").forEach((one) => { one.disabled = !rows.after.count; });
}

function play(name) {
  const context = new AudioContext(), sound = context.createBuffer(1, rows[name].count, RATE);
  sound.copyToChannel(whole(rows[name]), 0);
  const source = new AudioBufferSourceNode(context, { buffer: sound });
  source.connect(context.destination);
  source.onended = () => context.close();
  source.start();
}

button.addEventListener("click", () => running ? stop() : start().catch((error) => {
  said.textContent = error.message;
  document.body.dataset.state = "failed";
  stopped();
}));
for (const name of Object.keys(rows)) document.querySelector(`#${name} button`).addEventListener("click", () => play(name));
globalThis.recording = (name) => [...whole(rows[name])]; // for who looks at it in the console
