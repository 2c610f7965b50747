// Calls a function of a module (tools/page_program), in a page's worker and in node. Each call has an instance of its own: a kernel that
// fails leaves its threads where they are, and every run begins with the same addresses.

/** What the function says, as an object. `createEmulator` and `compiled` are the module's two parts. */
async function callModule(createEmulator, compiled, name, ...words) {
  const module = await new Promise((resolve, reject) => {
    createEmulator({
      instantiateWasm(imports, use) {
        WebAssembly.instantiate(compiled, imports).then(use, reject);
        return {};
      },
    }).then(resolve, reject);
  });
  const call = (name, ...words) => module.ccall(name, "string", words.map(() => "string"), words);
  try {
    return JSON.parse(call(name, ...words));
  } catch (error) {
    // WebAssembly has stopped a thread of the kernel.
    return JSON.parse(call("page_trapped", String(error?.message ?? error)));
  }
}

/** The events of a log, one for all threads that wait at one place for the same phase. */
function condensed(text = "") {
  const events = [], waits = new Map();
  for (const line of text.split("\n")) {
    if (!line) continue;
    const event = JSON.parse(line);
    if (event.event.includes("wait") && "phase" in event) {
      const key = [event.cta, event.event, event.barrier, event.phase, event.where].join(" ");
      const first = waits.get(key);
      if (first) {
        ++first.threads;
        continue;
      }
      waits.set(key, event);
      event.threads = 1;
    }
    if ("barrier" in event) event.barrier = event.barrier.replace(/^mbarrier /, "").replace(/ \(.*/, "");
    events.push(event);
  }
  return events;
}

/** A run as a page shows it. */
async function runForPage(createEmulator, compiled, ...words) {
  const said = await callModule(createEmulator, compiled, ...words);
  if (Array.isArray(said.events)) return said; // those of a script are few
  return {...said, events: condensed(said.events), ...("ledger" in said && {ledger: JSON.parse(said.ledger)})};
}

if (typeof module !== "undefined") module.exports = {callModule, runForPage};
