// Tensor memory: its accumulators, who adds to them and who reads them, from logs of the emulator (tools/play events 73) and from
// tools/play tensor_memory map.
"use strict";
{
  const {element} = figures;
  const WORDS = {free: "free", adding: "being multiplied into", full: "complete", reading: "being read", read: "read"};
  const hex = value => `0x${value.toString(16).padStart(8, "0")}`;
  const index = event => Number(/\[(\d+)\]/.exec(event.barrier)[1]);
  const at_accumulator = (event, kind) => Boolean(event) && (event.barrier || "").startsWith(`accumulators.${kind}`);

  /// What a log says after each event: the accumulators, quarter by quarter, the barriers, and what each role waits for next.
  const replay = run => {
    const warps = run.map[0].warps.length, states = [];
    let accumulators = Array.from({length: run.accumulators}, () => ({tile: null, lanes: Array(warps).fill("free")})), barriers = {}, tile = -1, into = 0, k_tile = 0;
    const role = event => event.event === "tcgen05.mma" || event.event.includes("wait") && at_accumulator(event, "empty") ? "issuer"
      : event.event === "mbarrier_arrive" || event.event.includes("wait") && at_accumulator(event, "full") ? "epilogue" : null;
    run.events.forEach((event, at) => {
      accumulators = accumulators.map(one => ({...one, lanes: [...one.lanes]}));
      if (event.barrier) barriers = {...barriers, [event.barrier]: event};
      const fill = (which, state) => accumulators[which].lanes.fill(state);
      if (event.event.includes("wait") && at_accumulator(event, "empty")) { into = index(event); accumulators[into].tile = ++tile; k_tile = 0; fill(into, "adding"); }
      if (event.event === "tcgen05.mma") { event.into = into; event.k_tile = k_tile++; }
      if (event.event === "phase" && at_accumulator(event, "full")) fill(index(event), "full");
      if (event.event.includes("wait") && at_accumulator(event, "full")) fill(index(event), "reading");
      if (event.event === "mbarrier_arrive" && at_accumulator(event, "empty")) accumulators[index(event)].lanes[event.warp] = "read";
      if (event.event === "phase" && at_accumulator(event, "empty")) fill(index(event), "free");
      if (event.barrier && !event.barrier.startsWith("ring")) event.tile = accumulators[index(event)].tile;
      const state = {event, accumulators, barriers};
      for (const who of ["issuer", "epilogue"]) {
        const next = run.events.slice(at + 1).find(other => role(other) === who);
        const waits = next && next.event.includes("wait") ? next : null;
        // A wait passes when the phase before the one that it finds is complete.
        state[who] = {next, waits, blocked: Boolean(waits) && ((barriers[waits.barrier] || {phase: 0}).phase < waits.phase)};
      }
      states.push(state);
    });
    return {...run, states};
  };
  figures.replayTensorMemory = replay;

  figures.kinds.tensor_memory = (place, data) => {
    let run = null, at = 0, first = 0, chosen = [0, 0];
    const frame = figures.frame(place, {title: "Tensor memory, event by event",
      sentence: "Because there are two accumulators, one thread may add to one of them while four warps read the other, each its own 32 lanes: here the issuer multiplies tile 2 into accumulator 0 while the warps read tile 1. The barriers are full and empty, as in a ring. Step through what the emulator logged in step 73, slow down a role, or give the CTA a single accumulator, with which the roles take turns.",
      keys: [["← →", "one event back, one event on"], ["Space", "play, pause"], ["Home End", "to the beginning, to the end"], ["S", "slow down the next role"]],
      source: data.source});
    const step = direction => {
      if (at + direction < first || at + direction >= run.states.length) return false;
      at += direction;
      tell();
      return true;
    };
    const player = figures.player(step, end => { at = end ? run.states.length - 1 : first; tell(); }, 900);
    const all = key => [...new Set(data.tensor_memory.map(one => one[key]))];
    const count = figures.choice("Accumulators", all("accumulators").map(one => [one, one]), value => choose(Number(value), run.slow));
    const slow = figures.choice("Slow down", all("slow").map(one => [one, one]), value => choose(run.accumulators, value));
    frame.tools.append(...player.buttons, element("span", {class: "gap"}), slow, count);
    const map = element("div", {class: "tensor-map", role: "group", "aria-label": "128 lanes, and the columns of each accumulator"}), roles = element("div", {class: "ring-roles"}), table = element("div");
    frame.stage.append(map, roles);
    frame.more.append(table);

    const choose = (accumulators, who) => {
      player.stop();
      const found = data.tensor_memory.find(one => one.accumulators === accumulators && one.slow === who);
      run = replay({...found, events: found.events.map(event => ({...event}))});
      first = Math.max(0, run.events.findIndex(event => event.event !== "mbarrier_init") - 1);
      at = first;
      chosen = [0, 0];
      tell();
    };
    const short = barrier => barrier.replace("accumulators.", "");
    const sentence = event => {
      const who = event.barrier && !event.barrier.startsWith("ring") ? `accumulator ${index(event)}` : "";
      if (event.event === "mbarrier_init") return "One warp has allocated the columns. Every barrier is in phase 0, and the accumulators are free.";
      if (event.event === "tcgen05.mma") return `The issuer issues ${event.instructions} tcgen05.mma instructions: k-tile ${event.k_tile} of tile ${run.states[at].accumulators[event.into].tile} into accumulator ${event.into}. ${event.k_tile ? "They add to what is there." : "The first one overwrites what is there."}`;
      if (event.event === "tcgen05_commit") return `The commit after tile ${event.tile} arrives at ${short(event.barrier)}: its multiplications are done.`;
      if (event.event.includes("wait") && at_accumulator(event, "empty")) return `The issuer's wait at ${short(event.barrier)} passes${event.phase === 0 ? ", because the barrier is fresh" : ": all four warps have read it"}. It may overwrite ${who} with tile ${event.tile}.`;
      if (event.event.includes("wait") && at_accumulator(event, "full")) return `The four warps' wait at ${short(event.barrier)} passes. Each loads its 32 lanes of tile ${event.tile} from ${who} into registers.`;
      if (event.event === "mbarrier_arrive") return `After tcgen05.wait::ld, warp ${event.warp} arrives at ${short(event.barrier)}: ${event.pending} of 4 arrivals ${event.pending === 1 ? "is" : "are"} missing.`;
      if (event.event === "phase" && at_accumulator(event, "full")) return `Phase ${event.phase - 1} of ${short(event.barrier)} is complete: tile ${event.tile} is in ${who}.`;
      if (event.event === "phase" && at_accumulator(event, "empty")) return `Phase ${event.phase - 1} of ${short(event.barrier)} is complete: ${who} is free.`;
      return `At ${event.barrier}: ${event.event}.`;
    };
    const tell = () => { frame.say(sentence(run.states[at].event)); render(); };
    const tellPlace = () => {
      const [which, warp] = chosen, {columns} = run.map[which], part = run.map[which].warps[warp];
      frame.say(`Warp ${warp} reaches lanes ${part.lanes.join(" to ")}, which are rows ${part.rows.join(" to ")} of the tile. In accumulator ${which}, columns ${columns.join(" to ")}, they begin at ${hex(part.address)}: lane ${part.lanes[0]} in the upper 16 bits, column ${columns[0]} in the lower.`);
    };
    const drawRole = who => {
      const {next, waits, blocked} = run.states[at][who], name = who === "issuer" ? "Issuer, one thread of warp 4 " : "Epilogue, warps 0 to 3 ";
      const words = waits ? `${blocked ? "waits" : "next waits"} at ${short(waits.barrier)} for parity ${(waits.phase + 1) % 2}` : !next ? "has nothing left to do" : who === "issuer" ? `multiplies into accumulator ${next.into}` : `reads accumulator ${index(next)}`;
      return element("div", {class: `ring-role ${who === "issuer" ? "producer" : "consumer"}`}, element("b", {}, name), blocked ? element("span", {class: "ring-badge"}, "waits") : null, element("p", {}, `${words}.`));
    };
    const render = () => {
      const {accumulators, barriers, event} = run.states[at];
      const rest = 512 - (run.map.at(-1).columns[1] + 1);
      map.style.setProperty("--columns", `3.6em ${run.map.map(({columns}) => `${columns[1] + 1 - columns[0]}fr`).join(" ")}${rest ? ` ${rest}fr` : ""}`);
      const cells = [element("span"), ...run.map.map(({columns}, which) => element("span", {}, `accumulator ${which}: columns ${columns.join("–")}`)), rest ? element("span", {}, "not allocated") : null];
      run.map[0].warps.forEach((part, warp) => {
        cells.push(element("span", {}, `lanes ${part.lanes.join("–")}`));
        accumulators.forEach((one, which) => cells.push(element("button", {type: "button", class: `tensor-cell tensor-${one.lanes[warp]}`, "data-cell": `${which}.${warp}`,
          "aria-label": `accumulator ${which}, warp ${warp}: ${WORDS[one.lanes[warp]]}`, onclick: () => { player.stop(); chosen = [which, warp]; tellPlace(); }},
          one.tile === null ? "free" : one.lanes[warp] === "reading" ? `warp ${warp} reads tile ${one.tile}` : one.lanes[warp] === "read" ? `warp ${warp} has read it` : one.lanes[warp] === "free" ? "free" : `tile ${one.tile}`)));
        if (rest) cells.push(element("span", {class: "tensor-nothing"}));
      });
      const focused = map.contains(document.activeElement) && document.activeElement.dataset.cell;
      map.replaceChildren(...cells.filter(Boolean));
      if (focused) map.querySelector(`[data-cell="${focused}"]`)?.focus();
      roles.replaceChildren(drawRole("issuer"), drawRole("epilogue"),
        element("div", {class: "ring-key"}, ...Object.entries(WORDS).map(([state, words]) => element("span", {}, element("span", {class: `swatch tensor-${state}`}), words))));
      const cell = name => { const barrier = barriers[name] || {phase: 0, pending: 0}; return element("td", {class: event.barrier === name ? "here" : ""}, `phase ${barrier.phase}, parity ${barrier.phase % 2}`, element("small", {}, `missing: ${barrier.pending} arrival${barrier.pending === 1 ? "" : "s"}`)); };
      table.replaceChildren(element("div", {class: "figure-scroll", tabindex: "0", role: "region", "aria-label": "The barriers of each accumulator"}, element("table", {class: "figure-table"},
        element("thead", {}, element("tr", {}, ...["accumulator", "full: the commit arrives", "empty: four warps arrive"].map(words => element("th", {scope: "col"}, words)))),
        element("tbody", {}, ...accumulators.map((_, which) => element("tr", {}, element("th", {scope: "row"}, String(which)), cell(`accumulators.full[${which}]`), cell(`accumulators.empty[${which}]`)))))));
      slow.querySelector("select").value = run.slow;
      count.querySelector("select").value = run.accumulators;
    };
    figures.keys(frame.card, {...player.keys, s: () => { const names = all("slow"); choose(run.accumulators, names[(names.indexOf(run.slow) + 1) % names.length]); }});
    choose(2, "nobody");
  };
}
