// The ring: stages, phases, the producer and the consumers, event by event, from logs of the emulator (tools/play events).
"use strict";
{
  const {element, escape, number} = figures;

  /// What a log says after each event: the barriers, the stages, and for each role what it did and what it waits for next.
  const replay = run => {
    const events = run.events, states = [];
    const role = event => {
      const consumer = `consumer ${Math.floor((event.warp || 0) / 4)}`;
      if (event.event === "wgmma") return consumer;
      if (event.event === "complete_tx" || event.event === "mbarrier_init" || event.event === "phase") return null;
      const full = (event.barrier || "").startsWith("full");
      if (event.event.includes("wait")) return full ? consumer : "producer";
      return full ? "producer" : consumer;
    };
    let barriers = {}, issued = 0, taken = {}, farthest = 0;
    let stages = Array.from({length: run.stages}, () => ({state: "empty", tile: null, bytes: 0}));
    // Which wait comes next for a role, from the log's end backwards.
    const roles = [...new Set(["producer", ...events.map(role).filter(Boolean).sort()])];
    const nextOf = {}, last = {};
    for (const who of roles) { nextOf[who] = []; last[who] = null; }
    for (let at = events.length - 1; at >= 0; --at) {
      for (const who of roles) nextOf[who][at] = last[who];
      const who = role(events[at]);
      if (who) last[who] = at;
    }
    events.forEach((event, at) => {
      barriers = {...barriers};
      stages = stages.map(stage => ({...stage}));
      const [, kind, digits] = /^(full|empty)\[(\d+)\]$/.exec(event.barrier || "") || [];
      const stage = digits === undefined ? null : stages[Number(digits)];
      if (event.barrier) barriers[event.barrier] = {phase: event.phase, pending: event.pending, tx: event.tx};
      if (event.event === "mbarrier_arrive_expect_tx" && kind === "full") {
        Object.assign(stage, {state: "flight", tile: issued++, bytes: event.bytes});
        event.tile = stage.tile;
      }
      if (event.event === "complete_tx") event.tile = stage.tile;
      if (event.event === "phase" && kind === "full") { stage.state = "full"; event.tile = stage.tile; }
      if (event.event.includes("wait") && kind === "full") { event.tile = stage.tile; stage.state = "read"; taken = {...taken, [role(event)]: (taken[role(event)] || 0) + 1}; }
      if (event.event.includes("wait") && kind === "empty") event.tile = issued;
      if (event.event === "mbarrier_arrive" && kind === "empty") event.tile = stage.tile;
      if (event.event === "phase" && kind === "empty") { event.tile = stage.tile; stage.state = "empty"; }
      const state = {event, barriers, stages, issued, taken};
      for (const who of roles) {
        const next = nextOf[who][at] === null ? null : events[nextOf[who][at]];
        const waits = next && next.event.includes("wait") ? next : null;
        // A wait passes when its phase is complete: the barrier is then in the phase after it, or has never been used (phase -1).
        const needs = waits ? waits.phase - 1 : null;
        const now = waits && barriers[waits.barrier] ? barriers[waits.barrier].phase : 0;
        state[who] = {waits, needs, blocked: Boolean(waits) && now <= needs, ended: !next, next};
        if (waits && barriers[waits.barrier]) farthest = Math.max(farthest, now - needs);
      }
      if (roles.every(who => state[who].ended)) for (const stage of stages) if (stage.state === "read") stage.state = "done";
      states.push(state);
    });
    return {...run, states, roles, farthest};
  };
  figures.replayRing = replay;

  const WORDS = {empty: "empty", flight: "in flight", full: "full", read: "being multiplied", done: "multiplied, not used again"};
  const SAY = {
    nobody: "Nobody is slowed down.",
    "the producer": "The producer goes on only where nothing else can: the consumer waits at full.",
    "the copies": "Copies land as late as possible: the consumer waits at full for bytes.",
    "the consumer": "The consumer goes on only where nothing else can: the ring fills up, and the producer waits at empty.",
    "the store": "The kernel computes two tiles; 1.2 is k-tile 2 of tile 1. The consumers are slow: while they store tile 0, the producer fills the ring for tile 1 and then waits."};

  figures.kinds.ring = (place, data) => {
    const runs = data.ring;
    let run = null, at = 0, wanted = 3;  // the stages that the reader chose
    const frame = figures.frame(place, {title: "A ring of stages, event by event",
      sentence: "Step through what the emulator logged, best with Next phase, which goes to where a barrier completes its phase. Each stage has two barriers, full and empty. Slow one role down and see who waits, and where.",
      keys: [["← →", "one event back, one event on"], ["Shift ← →", "to the phase before, to the next phase; N, too"], ["Space", "play, pause"], ["Home End", "to the beginning, to the end"],
             ["S", "slow down the next role"]],
      source: data.source});

    const tell = () => {
      const {event} = run.states[at];
      frame.say(sentence(event));
      render();
    };
    const step = direction => {
      if (at + direction < 0 || at + direction >= run.states.length) return false;
      at += direction;
      tell();
      return true;
    };
    const toPhase = direction => {
      let to = at + direction;
      while (to > first && to < run.states.length - 1 && run.states[to].event.event !== "phase") to += direction;
      at = Math.max(first, Math.min(run.states.length - 1, to));
      tell();
    };
    let first = 0;
    const player = figures.player(step, end => { at = end ? run.states.length - 1 : first; tell(); }, 700);
    const slowChoice = figures.choice("Slow down", [], value => choose(wanted, value));
    const stageChoice = figures.choice("Stages", [...new Set(runs.map(one => one.stages))].map(stages => [stages, stages]), value => choose(wanted = Number(value), run.slow));
    frame.tools.append(...player.buttons, figures.button("Next phase", "To the next phase that completes", () => { player.stop(); toPhase(1); }, {"data-do": "phase"}),
                       element("span", {class: "gap"}), slowChoice, stageChoice);

    const picture = element("div", {class: "ring-picture"});
    const roles = element("div", {class: "ring-roles"});
    const table = element("div", {class: "ring-stages"});
    const slider = element("input", {type: "range", min: 0, class: "ring-slider", "aria-label": "Event", oninput: () => { player.stop(); at = Math.max(first, Number(slider.value)); tell(); }});
    const why = element("p", {class: "ring-why"});
    const kernel = element("p", {class: "ring-kernel"});
    frame.stage.append(kernel, slider, element("div", {class: "ring-top"}, picture, roles));
    frame.more.append(table, why);

    const choose = (stages, slow) => {
      player.stop();
      const found = runs.find(one => one.stages === stages && one.slow === slow) || runs.find(one => one.slow === slow) || runs.find(one => one.stages === stages);
      run = replay({...found, events: found.events.map(event => ({...event}))});
      first = Math.max(0, run.events.findIndex(event => event.event !== "mbarrier_init") - 1);
      at = first;
      const select = slowChoice.querySelector("select");
      select.replaceChildren(...[...new Set(runs.map(one => one.slow))].map(value => element("option", {value}, value)));
      select.value = run.slow;
      Object.assign(stageChoice.querySelector("select"), {value: run.stages, disabled: runs.filter(one => one.slow === run.slow).length === 1});
      const consumers = run.roles.length - 1;
      kernel.textContent = `Step ${run.step}'s kernel: a producer, ${consumers === 1 ? "one consumer" : `${consumers} consumers`}, ${run.stages} stages, ${run.step === "14" ? "two tiles of " : ""}${run.k_tiles} k-tiles.`;
      slider.min = first;
      slider.max = run.states.length - 1;
      frame.say(SAY[run.slow]);
      render();
    };

    const tileName = tile => run.step === "14" ? `k-tile ${tile % run.k_tiles} of tile ${Math.floor(tile / run.k_tiles)}` : `k-tile ${tile}`;
    const letter = who => who === "producer" ? "P" : run.roles.length > 2 ? `C${who.at(-1)}` : "C";
    const name = who => who === "producer" ? "producer" : run.roles.length > 2 ? who : "consumer";
    const consumerName = event => run.roles.length > 2 ? `Consumer ${Math.floor((event.warp || 0) / 4)}` : "The consumer";
    const parity = phase => (phase + 2) % 2;
    const sentence = event => {
      const stage = event.barrier ? /\d+/.exec(event.barrier)[0] : "";
      const kind = event.event;
      if (kind === "mbarrier_init") return "The barriers are initialised: every one is in phase 0, parity 0. The stages are empty.";
      if (kind.includes("wait")) {
        const fresh = event.phase === 0;
        return `${event.barrier.startsWith("full") ? consumerName(event) : "The producer"}'s wait for parity ${parity(event.phase - 1)} at ${event.barrier} passes: ` +
          (fresh ? "the barrier is fresh, in phase 0, and counts as if a phase before it were complete." : `phase ${event.phase - 1} is complete, the barrier is in phase ${event.phase}, parity ${parity(event.phase)}.`) +
          (event.barrier.startsWith("full") ? ` It may multiply ${tileName(event.tile)}.` : ` It may fill stage ${stage} with ${tileName(event.tile)}.`);
      }
      if (kind === "mbarrier_arrive_expect_tx") return `The producer arrives at ${event.barrier} and expects ${number(event.bytes)} bytes: ${tileName(event.tile)} for stage ${stage}.`;
      if (kind.startsWith("cp_async")) return `The producer issues a copy of ${number(event.bytes)} bytes into stage ${stage}.`;
      if (kind === "complete_tx") return `${number(event.bytes)} bytes have landed in stage ${stage}; ${event.tx ? `${number(event.tx)} are still missing` : "none is missing any more"}.`;
      if (kind === "phase") return `${event.barrier}: phase ${event.phase - 1} is complete, and phase ${event.phase} begins with parity ${parity(event.phase)}. Stage ${stage} is ${event.barrier.startsWith("full") ? `full: ${tileName(event.tile)} came in phase ${event.phase - 1}` : "empty"}.`;
      if (kind === "mbarrier_arrive") return `${consumerName(event)} has read ${tileName(event.tile)} and arrives at ${event.barrier}.`;
      if (kind === "wgmma") return `${consumerName(event)} issues ${event.instructions} wgmma instructions.`;
      return kind;
    };

    // ---- the drawing

    const drawRing = state => {
      const size = 272, middle = size / 2, outer = 88, inner = 52, parts = [];
      const point = (angle, radius) => [middle + radius * Math.sin(angle), middle - radius * Math.cos(angle)].map(value => value.toFixed(1));
      const turn = 2 * Math.PI / run.stages;
      state.stages.forEach((stage, index) => {
        const from = index * turn + 0.03, to = (index + 1) * turn - 0.03;
        const big = to - from > Math.PI ? 1 : 0;
        const path = `M${point(from, outer)}A${outer} ${outer} 0 ${big} 1 ${point(to, outer)}L${point(to, inner)}A${inner} ${inner} 0 ${big} 0 ${point(from, inner)}z`;
        parts.push(`<path class="ring-${stage.state}" d="${path}"/>`);
        const [x, y] = point((from + to) / 2, (outer + inner) / 2);
        parts.push(`<text class="on-${stage.state}" x="${x}" y="${Number(y) + 5}" text-anchor="middle" font-size="15" font-weight="700">${stage.state === "empty" ? "" : run.step === "14" ? `${Math.floor(stage.tile / run.k_tiles)}.${stage.tile % run.k_tiles}` : stage.tile}</text>`);
        const corner = point(from + 0.15, outer - 11);
        parts.push(`<text class="ring-stage on-${stage.state}" x="${corner[0]}" y="${Number(corner[1]) + 4}" text-anchor="middle" font-size="11">${index}</text>`);
      });
      const arrow = (who, radius, inward) => {
        const part = state[who];
        const barrier = part.waits ? part.waits.barrier : part.next && part.next.barrier;
        if (!barrier) return;
        const side0 = run.roles.length > 2 && !inward ? (who.endsWith("0") ? -0.38 : 0.38) : 0;
        const angle = (Number(/\d+/.exec(barrier)[0]) + 0.5) * turn + side0 * turn / 2;
        const [x1, y1] = point(angle, radius), [x2, y2] = point(angle, inward ? outer + 4 : inner - 4);
        const side = [point(angle - 0.09 * (inward ? 1 : 1.9), inward ? outer + 15 : inner - 15), point(angle + 0.09 * (inward ? 1 : 1.9), inward ? outer + 15 : inner - 15)];
        parts.push(`<line class="ring-arrow ${who.split(" ")[0]}${part.blocked ? " blocked" : ""}" x1="${x1}" y1="${y1}" x2="${side.map(one => Number(one[0])).reduce((a, b) => a + b) / 2}" y2="${side.map(one => Number(one[1])).reduce((a, b) => a + b) / 2}"/>`,
                   `<path class="ring-head ${who.split(" ")[0]}" d="M${x2} ${y2}L${side[0]}L${side[1]}z"/>`);
        const [tx, ty] = point(angle, radius + (inward ? 9 : -9));
        parts.push(`<text class="ring-name ${who.split(" ")[0]}" x="${tx}" y="${Number(ty) + 4}" text-anchor="middle" font-size="13" font-weight="700">${letter(who)}</text>`);
      };
      arrow("producer", outer + 26, true);
      for (const who of run.roles.slice(1)) arrow(who, 22, false);
      picture.innerHTML = `<svg viewBox="0 0 ${size} ${size}" role="img" aria-label="${escape(state.stages.map((stage, index) => `stage ${index}: ${WORDS[stage.state]}${stage.state === "empty" ? "" : `, ${tileName(stage.tile)}`}`).join("; "))}">${parts.join("")}</svg>`;
    };

    const drawRole = (state, who) => {
      const part = state[who];
      let words = "has nothing left to do", detail = "";
      if (part.waits) {
        const barrier = part.waits.barrier;
        const now = state.barriers[barrier] ? state.barriers[barrier].phase : 0;
        words = `${part.blocked ? "waits" : "next waits"} at ${barrier} for parity ${parity(part.needs)}`;
        detail = part.needs < 0 ? "The barrier is fresh, so the wait passes at once."
          : `Phase ${part.needs} must be complete, and ${barrier} is ${part.blocked ? "still " : ""}in phase ${now} (parity ${parity(now)}): the wait ${part.blocked ? "does not pass" : "passes"}.`;
      } else if (part.next) {
        words = part.next.event === "wgmma" ? "multiplies" : part.next.event === "mbarrier_arrive" ? `will arrive at ${part.next.barrier}` : part.next.event.startsWith("cp_") ? "issues copies" : "fills a stage";
      }
      const done = state.taken[who];
      if (who !== "producer" && done && done % run.k_tiles === 0 && (part.waits || part.ended)) words = `stores ${run.step === "14" ? `tile ${done / run.k_tiles - 1}` : "its results"}${part.waits ? `, then waits at ${part.waits.barrier} for parity ${parity(part.needs)}` : ""}`;
      return element("div", {class: `ring-role ${who.split(" ")[0]}${part.blocked ? " blocked" : ""}`}, element("b", {}, `${name(who)[0].toUpperCase()}${name(who).slice(1)} (${letter(who)}) `), part.blocked ? element("span", {class: "ring-badge"}, "waits") : null,
                     element("p", {}, `${words}.`), element("p", {class: "soft"}, detail));
    };

    const bit = (phase, strong) => `<span class="ring-bit p${parity(phase)}${strong ? " strong" : ""}">${parity(phase)}</span>`;
    const drawTable = state => {
      const here = state.event.event !== "mbarrier_init" && state.event.barrier;
      const rows = state.stages.map((stage, index) => {
        const full = state.barriers[`full[${index}]`], empty = state.barriers[`empty[${index}]`];
        const waiting = barrier => run.roles.filter(who => state[who].blocked && state[who].waits.barrier === barrier).map(name).join(" and the ");
        const cell = (which, barrier) => `<td class="${here === which ? "here" : ""}">phase ${barrier ? barrier.phase : 0} ${bit(barrier ? barrier.phase : 0)}<small>missing: ${barrier ? barrier.pending : 0} arrival${barrier && barrier.pending === 1 ? "" : "s"}${which.startsWith("full") ? `, ${number(barrier ? barrier.tx : 0)} bytes` : ""}</small>${waiting(which) ? `<small class="waits">the ${waiting(which)} ${waiting(which).includes(" and ") ? "wait" : "waits"}</small>` : ""}</td>`;
        return `<tr><th scope="row"><span class="swatch ring-${stage.state}"></span>${index}</th><td>${stage.state === "empty" ? "empty" : `${tileName(stage.tile)}<small>${WORDS[stage.state]}</small>`}</td>${cell(`full[${index}]`, full)}${cell(`empty[${index}]`, empty)}</tr>`;
      });
      table.innerHTML = `<div class="figure-scroll" tabindex="0" role="region" aria-label="The barriers of each stage"><table class="figure-table"><thead><tr><th scope="col">stage</th><th scope="col">holds</th><th scope="col">full: the phase that runs now, and its parity</th><th scope="col">empty: the phase that runs now</th></tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
    };

    const render = () => {
      const state = run.states[at];
      slider.value = at;
      slider.setAttribute("aria-valuetext", `event ${at - first} of ${run.states.length - 1 - first}`);
      drawRing(state);
      roles.replaceChildren(...run.roles.map(who => drawRole(state, who)),
        element("div", {class: "ring-key"}, ...Object.entries(WORDS).map(([name, words]) => element("span", {}, element("span", {class: `swatch ring-${name}`}), words)),
          element("span", {}, `large: ${run.step === "14" ? "tile.k-tile" : "k-tile"}; small: stage`), element("span", {}, element("span", {class: "swatch ring-here"}), "the last event's barrier")));
      drawTable(state);
      why.innerHTML = `<b>Why one bit is enough.</b> A wait names a parity, not a phase. It would go wrong if its barrier completed two phases before the role looks, because the parity is then the old one again (the figure of one mbarrier shows that: “A wait for phase 0, in phases 0 to 3”). The ring rules this out: full[s] completes again only after the producer has refilled stage s, and the producer does that only after the consumer, whose own wait had passed, has released the stage. So, in this run as in every other, a barrier is at most <b>${run.farthest}</b> phase ahead of the phase that a role waits for next, and one bit tells “not yet” from “complete”.`;
    };
    figures.keys(frame.card, {...player.keys, "Shift+ArrowRight": () => { player.stop(); toPhase(1); }, n: () => { player.stop(); toPhase(1); }, "Shift+ArrowLeft": () => { player.stop(); toPhase(-1); },
      s: () => { const all = [...new Set(runs.map(one => one.slow))]; choose(wanted, all[(all.indexOf(run.slow) + 1) % all.length]); }});
    choose(wanted, "nobody");
  };
}
