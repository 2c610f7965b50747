// An mbarrier: a script of events, stepped through, from what tools/play mbarrier wrote.
"use strict";
{
  const {element, number} = figures;

  /// Why a reader's script cannot run in this page, or "".
  const obstacle = program => {
    if (typeof WebAssembly === "undefined" || typeof Worker === "undefined") return "This browser has no WebAssembly.";
    if (location.protocol === "file:") return "The page was opened as a file, and a browser then fetches no module.";
    return program ? "" : "This site was built without the emulator.";
  };

  const folder = document.currentScript ? document.currentScript.src.replace(/[^/]*$/, "") : "";
  let worker = null;
  /// What 'tools/play mbarrier SCRIPT --json' writes, by the same program, compiled to WebAssembly; {error} where it refuses the script.
  figures.runMbarrier = figures.runMbarrier || (({script, program}) => new Promise((done, failed) => {
    if (obstacle(program)) throw new Error(obstacle(program));
    worker = worker || new Worker(`${folder}../emulator/worker.js`);
    worker.onmessage = ({data}) => data.failed ? failed(new Error(data.failed)) : done(data.said);
    worker.onerror = event => failed(new Error(event.message || "The worker could not be started."));
    worker.postMessage({program: "page_mbarrier", words: ["page_mbarrier", script]});
  }));

  // The bits of the word, found by observation (common/ptx/mbarrier_word.h): what the program decodes.
  const FIELDS = [[63, 63, "parity"], [62, 43, "− arrivals missing"], [41, 21, "− bytes missing"], [20, 1, "− count"]];

  figures.kinds.mbarrier = (place, data) => {
    let run = data.mbarrier[0], at = 0;
    const frame = figures.frame(place, {title: "An mbarrier, event by event",
      sentence: "Pick a script and step through it. The barrier counts missing arrivals and missing bytes; when nothing is missing, its phase is complete and the next one begins.",
      keys: [["← →", "one event back, one event on"], ["Space", "play, pause"], ["Home End", "to the beginning, to the end"], ["N", "the next script"]],
      source: data.source});
    const stopped = () => Boolean(run.stopped_at);
    const count = () => run.events.length + (stopped() ? 1 : 0);
    const step = direction => {
      if (at + direction < 0 || at + direction >= count()) return false;
      at += direction;
      tell();
      return true;
    };
    const player = figures.player(step, end => { at = end ? count() - 1 : 0; tell(); }, 1100);
    const choice = figures.choice("Script", data.mbarrier.map((one, index) => [index, one.title]), value => choose(data.mbarrier[Number(value)]));
    frame.tools.append(...player.buttons, element("span", {class: "gap"}), choice);
    const input = element("input", {type: "text", size: 44, spellcheck: "false", autocapitalize: "off", value: "init 2, arrive, arrive, wait 0"});
    const own = element("form", {class: "mbarrier-own", onsubmit: async event => {
      event.preventDefault();
      player.stop();
      const script = input.value.trim();
      frame.say("The emulator runs your script.");
      try {
        const found = await figures.runMbarrier({script, program: data.program});
        if (found.error) frame.say(`${found.error}.`);
        else choose({title: "Your script", ...found});
      } catch (error) {
        frame.say(`${error.message} In a terminal, this runs the script: tools/play mbarrier ${script}`);
      }
    }}, element("label", {}, "Your own script ", input), figures.button("Run", "Run this script", null, {type: "submit"}),
      element("details", {class: "mbarrier-words"}, element("summary", {}, "Events"), element("p", {}, "init N, arrive [N], expect N, arrive_expect N, complete N (a copy brings N bytes), test P, wait P, inval: "
        + "N is a count of arrivals or bytes, P the parity of a phase. One thread executes them in turn.")));
    const script = element("ol", {class: "mbarrier-script"});
    const board = element("div", {class: "mbarrier-board"});
    const word = element("div", {class: "mbarrier-word"});
    const report = element("pre", {class: "mbarrier-report", tabindex: "0", hidden: true});
    frame.stage.append(own, script, board, word);
    frame.more.append(report);

    const choose = next => { player.stop(); run = next; at = 0; tell(); };
    const event = index => index < run.events.length ? run.events[index] : {event: run.stopped_at, stopped: true};

    const tell = () => {
      const now = event(at), before = at > 0 ? run.events[at - 1] : null;
      const last = at === count() - 1;
      let words;
      if (now.stopped) words = `The emulator stops the kernel here. ${run.ending}.`;
      else if (now.phase === undefined) words = "The barrier is invalidated: the memory may be used for something else.";
      else if (now.event.startsWith("init")) words = `A phase of this barrier takes ${now.count} arrival${now.count === 1 ? "" : "s"}. Phase 0 begins; a wait for parity 1 would pass already.`;
      else if (now.answer) {
        const parity = now.event.split(" ")[1];
        words = `Is the phase of parity ${parity} complete? The barrier is in phase ${now.phase}, whose parity is ${now.phase % 2}: ${now.answer}.`;
        if (now.event.startsWith("test") && now.phase > 1 && Number(parity) === 0) words += now.phase === 2 ? " But phase 0 was complete long ago: one bit cannot tell phase 2 from phase 0." : " That is right only by chance: one bit cannot tell phase 3 from phase 1.";
      } else if (before && before.phase !== undefined && now.phase > before.phase) words = `Nothing is missing any more: phase ${before.phase} is complete, and phase ${now.phase} begins with ${now.count} missing arrival${now.count === 1 ? "" : "s"} and parity ${now.phase % 2}.`;
      else words = `Missing now: ${now.pending} of ${now.count} arrivals${now.tx > 0 ? ` and ${number(now.tx)} bytes` : now.tx < 0 ? `; ${number(-now.tx)} bytes have come before they were expected` : ""}. Phase ${now.phase} goes on.`;
      if (last && !now.stopped && run.ending) words += ` ${run.ending}.`;
      frame.say(words);
      render();
    };

    const render = () => {
      choice.querySelector("select").value = data.mbarrier.indexOf(run) < 0 ? "" : data.mbarrier.indexOf(run);
      script.replaceChildren(...Array.from({length: count()}, (_, index) => element("li", {}, element("button", {type: "button", class: `${index === at ? "now" : index < at ? "past" : ""}${event(index).stopped ? " stopped" : ""}`,
        "aria-current": index === at ? "step" : null, onclick: () => { player.stop(); at = index; tell(); }}, event(index).event))));
      const now = at < run.events.length ? run.events[at] : run.events[run.events.length - 1];
      report.hidden = !(run.report && at === count() - 1);
      report.textContent = run.report;
      if (!now || now.phase === undefined) { board.replaceChildren(element("p", {}, "There is no barrier.")); word.replaceChildren(); return; }
      const phases = Math.max(4, ...run.events.map(one => (one.phase || 0) + 1));
      board.replaceChildren(
        element("div", {class: "mbarrier-part"}, element("b", {}, "Phase"), element("div", {class: "mbarrier-phases", role: "img", "aria-label": `Phase ${now.phase}, parity ${now.phase % 2}`},
          ...Array.from({length: phases}, (_, phase) => element("span", {class: `p${phase % 2}${phase === now.phase ? " now" : ""}${phase < now.phase ? " past" : ""}`}, String(phase), element("small", {}, `p. ${phase % 2}`))))),
        element("div", {class: "mbarrier-part"}, element("b", {}, "Arrivals"), element("div", {class: "mbarrier-dots", role: "img", "aria-label": `${now.pending} of ${now.count} missing`},
          ...Array.from({length: Math.min(now.count, 12)}, (_, index) => element("span", {class: index < now.count - now.pending ? "there" : ""}))), `${now.pending} of ${now.count} missing`),
        element("div", {class: "mbarrier-part"}, element("b", {}, "Bytes"), element("span", {class: "mbarrier-bytes"}, now.tx === 0 ? "none missing" : now.tx > 0 ? `${number(now.tx)} missing` : `${number(-now.tx)} too early`)),
        element("div", {class: "mbarrier-part"}, element("b", {}, "A wait for"), ...[0, 1].map(parity => element("span", {class: `mbarrier-wait p${parity} ${now.passes[parity] ? "passes" : "waits"}`}, `parity ${parity}: ${now.passes[parity] ? "passes" : "waits"}`))));
      const bits = BigInt(now.word).toString(2).padStart(64, "0");
      const parts = FIELDS.map(([high, low, name]) => element("span", {}, element("code", {}, bits.slice(63 - high, 64 - low)), element("small", {}, `${name} (${low === high ? "" : `${low}–`}${high})`)));
      word.replaceChildren(element("p", {}, "The word ", element("code", {}, now.word), ", bits as they were observed on an H200:"), element("div", {class: "mbarrier-bits"}, ...parts));
    };
    figures.keys(frame.card, {...player.keys, n: () => choose(data.mbarrier[(data.mbarrier.indexOf(run) + 1) % data.mbarrier.length])});
    tell();
  };
}
