// Runs kernels beside the page, so that the page can end one that does not end by itself.
importScripts("run_kernel.js");

let compiled;

/** The module's second part; a server that does not say that it is WebAssembly is forgiven. */
async function compile(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} could not be fetched (status ${answer.status})`);
  return WebAssembly.compile(await answer.arrayBuffer());
}

onmessage = async ({data: {program, words}}) => {
  try {
    if (!compiled) {
      importScripts(`${program}.js`);
      compiled = await compile(`${program}.wasm`);
    }
    const begin = performance.now();
    const said = await runForPage(createEmulator, compiled, ...words);
    postMessage({said, milliseconds: performance.now() - begin});
  } catch (error) {
    postMessage({failed: String(error?.message ?? error)});
  }
};
