// What a page's worker does, in node: run_in_node.js MODULE.js KERNEL SHAPE SEED COMPLETION prints what the module says, and
// run_in_node.js MODULE.js what it holds. With --record FILE it writes what a page shows where it cannot run a kernel.
const fs = require("fs");
const path = require("path");
const {callModule, runForPage} = require("./run_kernel.js");

const words = process.argv.slice(2);
const record = words[0] === "--record" ? words.splice(0, 2)[1] : null;
const program = path.resolve(words.shift());
const compiled = new WebAssembly.Module(fs.readFileSync(program.replace(/js$/, "wasm")));
const call = (...words) => callModule(require(program), compiled, ...words);

async function recorded() {
  const about = await call("page_describe");
  const runs = {};
  for (const {name, shape} of about.kernels) {
    runs[name] = await runForPage(require(program), compiled, "page_run", name, shape, "1", "random");
  }
  return `globalThis.recordedRuns = ${JSON.stringify({about, runs})};\n`;
}

(async () => {
  if (record) fs.writeFileSync(record, await recorded());
  else console.log(JSON.stringify(words.length ? await call("page_run", ...words) : await call("page_describe")));
})();
