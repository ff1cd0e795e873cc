// Engines that run one model in node, for bench_web.py, which says as lines of JSON what they are asked.
//
//     node bench_web.mjs FOLDER
//
// FOLDER/engines.json says which there are, and what they are given. The first answer says how long each took to load,
// and writes what each gives to files. Then, for ["NAME", seconds], the mean of the milliseconds
// of a processor that its runs take.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = path.resolve(process.argv[2]);
const { engines, inputs, onnxruntime } = JSON.parse(fs.readFileSync(path.join(folder, "engines.json")));

const ARRAYS = {
  bool: Uint8Array,
  float16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
};

function given({ type, file }) {
  const { buffer, byteOffset, byteLength } = fs.readFileSync(path.join(folder, file));
  return new ARRAYS[type](buffer.slice(byteOffset, byteOffset + byteLength));
}

async function ours(file) {
  const { load } = await import(pathToFileURL(path.join(folder, file)));
  const model = await load();
  const arrays = Object.fromEntries(inputs.map((one) => [one.name, given(one)]));
  return () => model.run(arrays);
}

async function theirs(file) {
  const { env, InferenceSession, Tensor } = createRequire(path.join(onnxruntime, "here.js"))("onnxruntime-web");
  env.wasm.numThreads = 1;
  env.logLevel = "error";
  const options = { executionProviders: ["wasm"], logSeverityLevel: 3 };
  const session = await InferenceSession.create(fs.readFileSync(file), options);
  const feeds = Object.fromEntries(inputs.map((one) => [one.name, new Tensor(one.type, given(one), one.shape)]));
  return async () => {
    const found = await session.run(feeds);
    return Object.fromEntries(Object.entries(found).map(([name, tensor]) => [name, tensor.data]));
  };
}

async function loaded(file) {
  const begin = performance.now();
  const run = await (file.endsWith(".onnx") ? theirs(file) : ours(file));
  const outputs = await run();
  return { run, outputs, milliseconds: performance.now() - begin };
}

function processorTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

async function mean(run, seconds) {
  const begin = processorTime();
  let count = 0;
  do {
    await run();
    count++;
  } while (processorTime() - begin < 1e3 * seconds);
  return (processorTime() - begin) / count;
}

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const runs = {};
const first = {};
for (const [name, file] of Object.entries(engines)) {
  try {
    const { run, outputs, milliseconds } = await loaded(file);
    for (const [output, one] of Object.entries(outputs)) {
      const bytes = new Uint8Array(one.buffer, one.byteOffset, one.byteLength);
      fs.writeFileSync(path.join(folder, `${name}.${output.replaceAll("/", "_")}.out`), bytes);
    }
    runs[name] = run;
    first[name] = { milliseconds };
  } catch (error) {
    first[name] = { failed: String(error.message ?? error).split("\n")[0] };
  }
}
say(first);
for await (const line of createInterface({ input: process.stdin })) {
  const [name, seconds] = JSON.parse(line);
  say(await mean(runs[name], seconds));
}
