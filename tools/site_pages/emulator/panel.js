// "Run this kernel here": the emulator in a chapter's page. Nothing is fetched before the reader asks for it.
"use strict";

{
const script = document.currentScript.src;
const folder = script.slice(0, script.lastIndexOf("/") + 1);
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawn(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function load(address) {
  return new Promise((resolve, reject) => {
    document.head.append(element("script", {src: address, onload: resolve, onerror: () => reject(new Error(`${address} could not be fetched`))}));
  });
}

// ---- where a kernel runs ---------------------------------------------------------------------------------------------

/** A worker with the module. `stop` ends what runs; the next run begins with a new worker. */
class Emulator {
  constructor(program) {
    this.program = program;
  }

  start() {
    this.worker = new Worker(`${folder}worker.js`);
    this.worker.onmessage = ({data}) => (data.failed ? this.reject(new Error(data.failed)) : this.resolve(data));
    this.worker.onerror = event => this.reject(new Error(event.message || "the worker could not be started"));
  }

  call(...words) {
    if (!this.worker) this.start();
    return new Promise((resolve, reject) => {
      Object.assign(this, {resolve, reject});
      this.worker.postMessage({program: this.program, words});
    });
  }

  stop() {
    this.worker?.terminate();
    this.worker = null;
    this.reject?.(new Error("stopped"));
  }
}

/** Runs that were recorded when the site was built, for where nothing can run. */
class Recorded {
  async call(name, kernel) {
    if (!globalThis.recordedRuns) await load(`${this.program}.recorded.js`);
    return {said: name === "page_describe" ? recordedRuns.about : recordedRuns.runs[kernel]};
  }

  constructor(program) {
    this.program = program;
  }

  stop() {}
}

/** Why nothing can run here, or "". */
function obstacle() {
  if (location.protocol === "file:") return "The page was opened as a file, and a browser then fetches no module; tools/site --serve serves the site.";
  if (typeof WebAssembly === "undefined" || typeof Worker === "undefined") return "This browser has no WebAssembly.";
  return "";
}

// ---- the kernel's text -----------------------------------------------------------------------------------------------

const normalised = line => line.replace(/namespace gemm::\w+/, "namespace").trim();

/** The numbers of the lines of `text` that `other` does not have, by the longest common sequence of lines. Variants are left out. */
function changedLines(text, other) {
  const cut = lines => lines.slice(0, lines.findIndex(line => line.includes("const gemm::Step kStep") || line.includes("const Step kStep")));
  const a = cut(text.split("\n")).map(normalised), b = cut(other.split("\n")).map(normalised);
  const best = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; --i) {
    for (let j = b.length - 1; j >= 0; --j) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const changed = new Set();
  let gone = 0;
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) ++i, ++j;
    else if (j < b.length && (i === a.length || best[i][j + 1] >= best[i + 1][j])) ++gone, ++j, changed.add(i + 1);
    else changed.add(++i);
  }
  return {changed, gone};
}

/** The kernel with the lines that the exercise has changed, and those that the report names. */
function kernelText(kernel, right, named, prefix) {
  const {changed} = kernel === right ? {changed: new Set()} : changedLines(kernel.source, right.source);
  const rows = kernel.source.replace(/\n$/, "").split("\n").map((line, at) => {
    const number = at + 1;
    const kind = `line${changed.has(number) ? " broken" : ""}${named.includes(number) ? " named" : ""}`;
    return element("div", {className: kind, id: `${prefix}-L${number}`}, element("a", {href: `#${prefix}-L${number}`}, String(number)),
                   element("code", {}, line || " "), ...(named.includes(number) ? [element("span", {className: "visually-hidden"}, " (the report names this line)")] : []));
  });
  return element("div", {className: "source emulator-source", tabIndex: 0, role: "region", "aria-label": "The kernel's text"}, ...rows);
}

/** The report, in which places in the kernel lead to its lines. */
function reportText(text, path, prefix) {
  const shown = element("pre", {className: "emulator-report", tabIndex: 0});
  let from = 0;
  for (const found of text.matchAll(/[\w./]+\.cuh:(\d+)/g)) {
    if (!found[0].startsWith(`${path}:`)) continue;
    shown.append(text.slice(from, found.index), element("a", {href: `#${prefix}-L${found[1]}`}, found[0]));
    from = found.index + found[0].length;
  }
  shown.append(text.slice(from));
  return shown;
}

// ---- the timeline ----------------------------------------------------------------------------------------------------

/** One row for each role and engine; the file is the one that Perfetto opens. */
function timelineFigure(file) {
  const {traceEvents} = JSON.parse(file);
  const spans = traceEvents.filter(event => event.ph === "X");
  const names = new Map();
  for (const {ph, name, pid, tid, args} of traceEvents) {
    if (ph === "M" && name === "process_name") names.set(`${pid}`, args.name);
    if (ph === "M" && name === "thread_name") names.set(`${pid}/${tid}`, args.name);
  }
  const rows = [...new Set(spans.map(({pid, tid}) => `${pid}/${tid}`))].sort((a, b) => {
    const [p, t] = a.split("/").map(Number), [q, u] = b.split("/").map(Number);
    return p - q || t - u;
  });
  const kinds = [...new Set(spans.map(event => event.name.replace(/[\d[\]]+/g, "").trim()))];
  const colour = name => `hsl(${(kinds.indexOf(name.replace(/[\d[\]]+/g, "").trim()) * 137 + 210) % 360} 55% 55%)`;
  const end = Math.max(...spans.map(event => event.ts + event.dur));
  const left = 270, width = 900, height = 20;
  const figure = drawn("svg", {viewBox: `0 0 ${left + width + 10} ${rows.length * height + 24}`, role: "img",
                               "aria-label": `Timeline of ${rows.length} roles and engines over ${end.toFixed(2)} microseconds`});
  rows.forEach((row, at) => {
    const label = `${names.get(row.split("/")[0]) ?? ""} · ${names.get(row) ?? row}`;
    figure.append(drawn("text", {x: left - 6, y: at * height + 14, "text-anchor": "end", class: "emulator-label"}, label));
  });
  for (const event of spans) {
    const stage = event.args && "stage" in event.args ? `, stage ${event.args.stage}` : "";
    const k = event.args && "k_tile" in event.args ? `, k-tile ${event.args.k_tile}` : "";
    figure.append(drawn("rect", {x: left + event.ts / end * width, y: rows.indexOf(`${event.pid}/${event.tid}`) * height + 3,
                                 width: Math.max(0.7, event.dur / end * width), height: height - 5, fill: colour(event.name)},
                        drawn("title", {}, `${event.name}${stage}${k}: ${event.ts.toFixed(3)} to ${(event.ts + event.dur).toFixed(3)} µs`)));
  }
  figure.append(drawn("text", {x: left, y: rows.length * height + 18, class: "emulator-label"}, "0"),
                drawn("text", {x: left + width, y: rows.length * height + 18, "text-anchor": "end", class: "emulator-label"}, `${end.toFixed(2)} µs in the model`));
  const legend = element("p", {className: "emulator-legend"}, ...kinds.map(kind =>
    element("span", {}, element("i", {style: `background:${colour(kind)}`}), kind)));
  return element("div", {}, element("div", {className: "emulator-timeline", tabIndex: 0, role: "region", "aria-label": "Timeline"}, figure), legend);
}

// ---- the barriers ----------------------------------------------------------------------------------------------------

/** A table in a region that scrolls. */
function scrolled(label, head, body) {
  return element("div", {className: "emulator-scroll", tabIndex: 0, role: "region", "aria-label": label},
    element("table", {}, element("thead", {}, element("tr", {}, ...head.map(text => element("th", {scope: "col"}, text)))), body));
}

/** The barriers of a row of the ledger: "full[0-3]" stands for full[0] to full[3]. */
function barriersOf({barrier}) {
  const [, name, indices] = /^(.*)\[([\d, -]+)\]$/.exec(barrier) ?? [];
  if (!name) return [barrier];
  return indices.split(", ").flatMap(part => {
    const [first, last = first] = part.split("-").map(Number);
    return Array.from({length: last - first + 1}, (_, at) => `${name}[${first + at}]`);
  });
}

/** The observed ledger: who arrives at each barrier and how often, who waits, and what the barrier orders. `mark` marks a barrier's row. */
function ledgerTable({roles, barriers, ctas}, prefix, path) {
  const rows = barriers.map(row => {
    const line = row.where.startsWith(`${path}:`) ? row.where.slice(path.length + 1) : null;
    const orders = row.orders.map(({before, after, bytes}) => `${before}, ${after}: ${bytes.toLocaleString("en-US")} bytes`).join("; ");
    const name = line ? element("a", {href: `#${prefix}-L${line}`}, row.barrier) : row.barrier;
    return {names: barriersOf(row), shown: element("tr", {}, element("th", {scope: "row"}, name),
            ...[row.count || "–", row.arrives || "nobody", row.waits || "nobody", row.first_phase || "–", row.kind === "wait for groups" ? "–" : row.phases, orders || "–"]
              .map(text => element("td", {}, String(text))))};
  });
  const head = ["barrier", "a phase needs", "arrive in a phase", "wait", "first wait for", "phases completed", "orders"];
  const seen = ctas.launched > ctas.recorded ? ` Recorded: ${ctas.recorded} of ${ctas.launched} CTAs.` : "";
  return {mark: name => rows.forEach(({names, shown}) => { shown.className = names.includes(name) ? "now" : ""; }),
          shown: element("div", {}, element("ul", {className: "emulator-roles"}, ...roles.map(({role}) => element("li", {}, role))),
                         scrolled("The ledger", head, element("tbody", {}, ...rows.map(({shown}) => shown))),
                         element("p", {className: "emulator-note"}, `Observed in this run, up to its end or to the report.${seen} The same in a terminal: tools/run ${prefix.slice(-2)} --ledger.`))};
}

/** The barriers as they are after each event; a slider moves through the run, and `mark` is told the barrier. */
function barrierTable(events, prefix, path, mark) {
  const names = [...new Set(events.filter(event => event.barrier).map(event => `${event.cta} ${event.barrier}`))];
  const body = element("tbody"), said = element("output", {className: "emulator-event"});
  const range = element("input", {type: "range", min: 0, max: events.length - 1, value: events.length - 1, "aria-label": "Event"});
  const show = () => {
    const at = Number(range.value), states = new Map();
    for (const event of events.slice(0, at + 1)) if (event.barrier) states.set(`${event.cta} ${event.barrier}`, event);
    const now = events[at];
    const line = now.where?.startsWith(`${path}:`) ? now.where.slice(path.length + 1) : null;
    const by = now.threads > 1 ? `, ${now.threads} threads, first ${now.thread}` : "thread" in now ? `, thread ${now.thread}`
               : now.event === "phase" ? "" : ", by an engine";
    const what = now.event === "phase" ? "the phase completes" : now.event;
    said.replaceChildren(`Event ${at + 1} of ${events.length}: ${what}${now.barrier ? ` at ${now.barrier}` : ""}, CTA ${now.cta}${by}`,
                         ...(line ? [", ", element("a", {href: `#${prefix}-L${line}`}, `line ${line}`)] : []));
    body.replaceChildren(...names.map(name => {
      const [cta, barrier] = [name.slice(0, name.indexOf(" ")), name.slice(name.indexOf(" ") + 1)];
      const state = states.get(name);
      const cells = state ? [state.phase, state.pending, state.tx, state.event] : ["", "", "", "not initialised yet"];
      return element("tr", {className: now.barrier && name === `${now.cta} ${now.barrier}` ? "now" : ""},
                     ...[cta, barrier, ...cells].map(text => element("td", {}, String(text))));
    }));
    mark(now.barrier);
  };
  const step = by => () => {
    range.value = Number(range.value) + by;
    show();
  };
  range.addEventListener("input", show);
  show();
  const head = ["CTA", "barrier", "phase", "missing arrivals", "missing bytes", "last event"];
  return element("div", {},
    element("p", {className: "emulator-slider"}, element("button", {type: "button", className: "md-button", onclick: step(-1), "aria-label": "The event before"}, "‹"),
            range, element("button", {type: "button", className: "md-button", onclick: step(1), "aria-label": "The next event"}, "›"), said),
    scrolled("Barriers", head, body));
}

// ---- the panel -------------------------------------------------------------------------------------------------------

function control(label, field) {
  return element("label", {}, `${label} `, field);
}

function panel(section) {
  const why = obstacle();
  const program = `${folder}${section.dataset.program}`;
  const emulator = why ? new Recorded(program) : new Emulator(program);
  const prefix = section.dataset.program;
  const status = element("p", {className: "emulator-status", role: "status"}), result = element("div");
  const open = section.querySelector("button");
  open.hidden = false;

  function build(about) {
    const [right] = about.kernels;
    const kernels = element("select", {}, ...about.kernels.map(({name, title}) => element("option", {value: name}, name === "right" ? title : `Broken: ${title}`)));
    const shape = element("input", {type: "text", size: 14, spellcheck: false, disabled: Boolean(why)});
    const seed = element("input", {type: "number", min: 0, max: 999999999, value: 1, disabled: Boolean(why)});
    const completion = element("select", {disabled: Boolean(why)}, ...["random", "earliest", "latest"].map(name => element("option", {}, name)));
    const run = element("button", {type: "submit", className: "md-button md-button--primary"}, why ? "Show the recorded run" : "Run");
    const stop = element("button", {type: "button", className: "md-button", hidden: true, onclick: () => emulator.stop()}, "Stop");
    const chosen = () => about.kernels.find(({name}) => name === kernels.value);
    const suggest = () => {
      shape.value = chosen().shape;
      result.replaceChildren(kernelText(chosen(), right, [], prefix));
      status.textContent = "";
    };
    kernels.addEventListener("change", suggest);

    async function go(event) {
      event.preventDefault();
      run.disabled = true;
      stop.hidden = Boolean(why);
      status.textContent = "Running …";
      try {
        const {said, milliseconds} = await emulator.call("page_run", kernels.value, shape.value.trim(), seed.value, completion.value);
        show(said, milliseconds);
      } catch (error) {
        result.replaceChildren(kernelText(chosen(), right, [], prefix));
        status.textContent = error.message === "stopped" ? "Stopped. The next run starts a new worker." : `The kernel could not be run: ${error.message}.`;
      }
      run.disabled = false;
      stop.hidden = true;
    }

    function show(said, milliseconds) {
      const kernel = chosen();
      const time = milliseconds === undefined ? "" : ` (${(milliseconds / 1000).toFixed(2)} s)`;
      const words = {right: "The result is right", wrong: "The result is wrong", report: `The emulator's report: ${said.rule}`, refused: "Refused"};
      status.textContent = `${words[said.outcome]}${time}.`;
      const parts = [reportText(said.text, kernel.path, prefix)];
      const part = (title, content) => parts.push(element("details", {open: true}, element("summary", {}, title), content));
      if (said.timeline) part("Timeline: what each role does when, in the emulator's model of time", timelineFigure(said.timeline));
      const events = said.events ?? [];
      const ledger = said.ledger?.barriers.length ? ledgerTable(said.ledger, prefix, kernel.path) : null;
      if (ledger) part("Barriers: who arrives, who waits, and what lies between", ledger.shown);
      if (events.some(event => event.barrier)) part("Barriers, event by event: phase, missing arrivals and bytes", barrierTable(events, prefix, kernel.path, ledger?.mark ?? (() => {})));
      part(said.lines.length ? `The kernel: the report names line${said.lines.length > 1 ? "s" : ""} ${said.lines.join(", ")}` : "The kernel",
           kernelText(kernel, right, said.lines, prefix));
      result.replaceChildren(...parts);
      const first = said.outcome === "right" ? null : result.querySelector(".emulator-source .named");
      if (first) first.parentNode.scrollTop = first.offsetTop - 60;  // the line above it is shown, too
    }

    const form = element("form", {className: "emulator-controls", onsubmit: go}, control("Kernel", kernels), control("Shape (M×N×K)", shape), control("Seed", seed),
                         control("Asynchronous operations complete", completion), run, stop);
    open.replaceWith(...(why ? [element("p", {}, `${why} These are the runs that were recorded when the site was built.`)] : []), form, status, result);
    suggest();
  }

  open.addEventListener("click", async () => {
    open.disabled = true;
    open.textContent = "Fetching …";
    try {
      build((await emulator.call("page_describe")).said);
    } catch (error) {
      open.replaceWith(element("p", {role: "status"}, `The emulator could not be started: ${error.message}.`));
    }
  });
}

for (const section of document.querySelectorAll(".emulator")) panel(section);
}
