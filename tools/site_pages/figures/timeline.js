// Roles in time: a player for the timelines that tools/run --trace records. tools/figures/compact_trace.py says how rows are written.
"use strict";
{
  const {element, button, escape, number} = figures;
  const KINDS = {
    i: ["issue", "issue", "issues the copies"], m: ["multiply", "multiply", "multiplies"], d: ["drain", "multiply, drain", "waits for the multiplications in flight"],
    p: ["epilogue", "epilogue", "rounds its results"], s: ["store", "store", "stores"], f: ["wait-full", "wait full", "waits for a full stage"],
    e: ["wait-empty", "wait empty", "waits for an empty stage"], o: ["wait-order", "wait order", "waits for its turn"],
    w: ["wait-store", "wait store", "waits for a store"], c: ["wait-source", "wait source", "waits for C"],
    x: ["partials", "pass partials", "passes partials"], y: ["copy", "copy in flight", "in flight"]};
  /// The spans of a row: {letter, from, to, cta, tile, k, stage, bytes}.
  const read = (text, stages) => {
    const spans = [], last = {};
    let end = 0, cta = 0, bytes;
    for (const word of text.split(" ")) {
      if (word[0] === "#") { cta = Number(word.slice(1)); continue; }
      const found = /^([a-z])(?:(-?\d+)\+)?(\d+)(?:@([\d.]*))?(?:~(\d+))?$/.exec(word);
      const [, letter, gap, clocks, place, size] = found;
      let known = last[letter] || [];
      if (place !== undefined) known = place === "" ? [] : place.split(".").map(Number);
      else if (known.length > 1) known = [known[0], known[1] + 1, ...known.slice(2).map(stage => (stage + 1) % stages)];
      last[letter] = known;
      if (size) bytes = Number(size);
      const from = end + Number(gap || 0);
      end = from + Number(clocks);
      spans.push({letter, from, to: end, cta, tile: known[0], k: known[1], stage: known[2], ...(letter === "y" ? {bytes} : {})});
    }
    return spans;
  };

  const decode = trace => {
    const rows = trace.rows.map(row => ({...row}));
    for (const row of rows) {
      if (typeof row.spans === "number") row.spans = rows[row.spans].spans.map(span => ({...span}));
      else row.spans = row.spans ? read(row.spans, trace.stages) : [];
    }
    for (const row of rows) {
      // What is in flight at the same time is drawn in lanes: those of the stages where they are known.
      const lanes = [];
      for (const span of row.spans) {
        span.row = row;
        if (row.kind !== "copies") { span.lane = 0; continue; }
        if (span.stage !== undefined) span.lane = span.stage;
        else {
          span.lane = lanes.findIndex(until => until <= span.from);
          if (span.lane < 0) span.lane = lanes.length;
        }
        lanes[span.lane] = span.to;
      }
      row.lanes = row.kind === "copies" ? Math.max(1, lanes.length) : 1;
    }
    return {...trace, rows};
  };
  figures.decodeTimeline = decode;

  const where = span => span.k === undefined ? (span.tile === undefined ? "" : `tile ${span.tile}`)
    : `k-tile ${span.k}${span.stage === undefined ? "" : `, stage ${span.stage}`}${span.tile ? `, tile ${span.tile}` : ""}`;
  const named = span => [KINDS[span.letter][1], where(span)].filter(Boolean).join(", ");
  const actor = row => row.kind === "copies" ? "a copy" : row.name;
  const doing = span => span.row.kind === "tensor cores" && span.letter === "m" ? "multiply" : KINDS[span.letter][2];
  const length = span => `${number(span.from)} to ${number(span.to)}, ${number(span.to - span.from)} clocks`;

  figures.kinds.timeline = (place, data) => {
    const traces = data.traces.map(decode);
    const end = Math.max(...traces.map(trace => trace.end));
    const spans = traces.flatMap(trace => trace.rows.flatMap(row => row.spans));
    const stages = Math.max(0, ...spans.map(span => span.stage === undefined ? 0 : span.stage + 1));
    const view = {from: data.from || 0, to: end};
    const steps = traces.map(trace => trace.head[0].slice(5, 7));
    const titles = steps.map((step, index) => traces[index].title ? traces[index].title : steps.indexOf(step) === steps.lastIndexOf(step) ? `Step ${step}` : `Timeline ${index + 1}`);
    let clock = data.clock || Math.min(...spans.map(span => span.from)), followed = null, chosen = null, pointed = null, width = 0;

    const frame = figures.frame(place, {title: data.title, sentence: data.sentence, source: data.source, keys: [
      ["← →", "the event before, the next event"], ["Shift ← →", "move the view"], ["+ −", "zoom in, zoom out"], ["0", "show everything"],
      ["Space", "play, pause"], ["Home End", "to the beginning, to the end"], ["F", "follow the next stage"]]});

    // ---- events: where a span begins or ends

    const relevant = span => followed === null || span.stage === followed;
    const moments = () => [...new Set(spans.filter(relevant).flatMap(span => [span.from, span.to]))].sort((a, b) => a - b);
    const step = direction => {
      const all = moments();
      const next = direction > 0 ? all.find(moment => moment > clock) : all.reverse().find(moment => moment < clock);
      if (next === undefined) return false;
      clock = next;
      chosen = null;
      keepInView();
      tell();
      return true;
    };
    const keepInView = () => {
      if (clock < view.from || clock > view.to) showFrom(clock - (view.to - view.from) / 4);
    };
    const tell = () => {
      const told = traces.map((trace, at) => {
        const here = moment => trace.rows.flatMap(row => row.spans).filter(span => relevant(span) && span[moment] === clock);
        const begun = here("from"), shown = begun.length ? begun : here("to");
        return shown.length ? ` ${titles[at]}: ${shown.slice(0, 4).map(span => `${actor(span.row)} ${begun.length ? "begins" : "ends"}: ${named(span)}`).join("; ")}.` : "";
      });
      frame.say(`Clock ${number(clock)}.${told.join("")}`);
      render();
    };

    // ---- controls

    const showFrom = (from, size = view.to - view.from) => {
      view.from = Math.max(0, Math.min(end - size, from));
      view.to = view.from + size;
      render();
    };
    const zoom = factor => {
      const about = clock < view.from || clock > view.to ? (view.from + view.to) / 2 : clock;
      const size = Math.min(end, Math.max(40, (view.to - view.from) * factor));
      showFrom(about - (about - view.from) / (view.to - view.from) * size, size);
    };
    const pan = share => showFrom(view.from + share * (view.to - view.from));
    const whole = () => showFrom(0, end);
    const follow = value => {
      followed = value === "" ? null : Number(value);
      chosen = null;
      if (followChoice) followChoice.querySelector("select").value = value;
      frame.say(followed === null ? "All stages are shown." : `Stage ${followed} is followed: steps stop only at what happens to it.`);
      render();
    };
    const player = figures.player(step, place => { clock = place ? end : 0; chosen = null; keepInView(); tell(); }, 900, passed => {
      clock = Math.min(end, clock + (view.to - view.from) * passed / 16000);
      keepInView();
      render();
      return clock < end;
    });
    const followChoice = stages > 1 ? figures.choice("Follow", [["", "all stages"], ...Array.from({length: stages}, (_, stage) => [stage, `stage ${stage}`])], follow) : null;
    frame.tools.append(
      ...player.buttons, element("span", {class: "gap"}),
      button("−", "Zoom out", () => zoom(1.6), {"data-do": "out"}), button("+", "Zoom in", () => zoom(1 / 1.6), {"data-do": "in"}),
      button("Whole", "Show everything", whole, {"data-do": "whole"}), element("span", {class: "gap"}), ...(followChoice ? [followChoice] : []));

    // ---- the drawing

    const legend = element("div", {class: "timeline-legend"}, ...Object.entries(KINDS).filter(([letter]) => spans.some(span => span.letter === letter)).map(
      ([, [name, words]]) => element("span", {class: `act-${name}`}, element("span", {class: "swatch"}), words)));
    const plot = element("div", {class: "timeline", tabindex: "0", role: "application", "aria-roledescription": "timeline",
                                 "aria-label": `${data.title}. Arrow keys go from event to event.`});
    const tip = element("div", {class: "timeline-tip", hidden: true});
    const panels = traces.map(trace => {
      const box = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      box.setAttribute("aria-hidden", "true");
      plot.append(element("div", {class: "timeline-trace"}, element("p", {}, element("b", {}, trace.head[0]), element("span", {}, trace.head[1])), box));
      return {trace, box};
    });
    plot.append(tip);
    const handle = element("div");
    const overview = element("div", {class: "timeline-overview", "aria-hidden": "true", title: "What part is shown: drag it"}, handle);
    const now = element("div", {class: "timeline-now"});
    const life = element("div", {class: "timeline-life"});
    frame.stage.append(legend, plot, overview);
    frame.more.append(life, now);

    const narrow = () => width < 620;
    const left = () => narrow() ? 0 : 158;
    const x = at => left() + (at - view.from) / (view.to - view.from) * (width - left());
    const at = position => view.from + (position - left()) / (width - left()) * (view.to - view.from);
    const tick = () => {
      const wanted = (view.to - view.from) / (narrow() ? 4 : 8);
      const power = 10 ** Math.floor(Math.log10(wanted));
      return power * [1, 2, 5, 10].find(factor => factor * power >= wanted);
    };

    const drawRow = (row, top, hits) => {
      const parts = [], high = row.kind === "copies" ? Math.max(22, row.lanes * 11 + 2) : 22;
      const label = narrow() ? 14 : 0;
      parts.push(narrow() ? `<text x="2" y="${top + 11}">${escape(row.name)}</text>` : `<text x="${left() - 8}" y="${top + 15}" text-anchor="end">${escape(row.name)}</text>`);
      top += label;
      parts.push(`<line class="grid" x1="${left()}" x2="${width}" y1="${top + high + 1.5}" y2="${top + high + 1.5}"/>`);
      for (const span of row.spans) {
        if (span.to < view.from || span.from > view.to) continue;
        const begin = Math.max(left(), x(span.from)), wide = Math.max(1, Math.min(width, x(span.to)) - begin);
        const [name] = KINDS[span.letter];
        let y = top + 2, height = high - 4;
        if (row.kind === "copies") { height = (high - 3) / row.lanes - 1; y = top + 2 + span.lane * (height + 1); }
        else if (name.startsWith("wait")) { y += 4; height -= 8; }
        parts.push(`<rect class="bar act-${name}${relevant(span) ? "" : " faded"}${span === chosen || span === pointed ? " lit" : ""}" x="${begin.toFixed(1)}" y="${y.toFixed(1)}" width="${wide.toFixed(1)}" height="${height.toFixed(1)}" rx="1.5"/>`);
        if (span.stage !== undefined && relevant(span) && wide > 13 && height >= 9 && "imy".includes(span.letter))
          parts.push(`<text class="stage-number" x="${(begin + wide / 2).toFixed(1)}" y="${(y + height / 2 + 3.5).toFixed(1)}">${span.stage}</text>`);
        hits.push({span, left: begin - 1, right: begin + wide + 1, top: row.kind === "copies" ? y : top, bottom: row.kind === "copies" ? y + height : top + high});
      }
      return [parts.join(""), high + label + 4];
    };

    const render = () => {
      if (!width) return;
      const every = tick();
      for (const panel of panels) {
        const parts = [];
        panel.hits = [];
        let y = 4;
        for (const row of panel.trace.rows) {
          const [text, high] = drawRow(row, y, panel.hits);
          parts.push(text);
          y += high;
        }
        for (let moment = Math.ceil(view.from / every) * every; moment <= view.to; moment += every) {
          const anchor = x(moment) > width - 30 ? "end" : x(moment) < left() + 5 && narrow() ? "start" : "middle";
          parts.push(`<line class="grid" x1="${x(moment).toFixed(1)}" x2="${x(moment).toFixed(1)}" y1="${y}" y2="${y + 5}"/>`,
                     `<text class="axis" x="${x(moment).toFixed(1)}" y="${y + 16}" text-anchor="${anchor}">${number(moment)}</text>`);
        }
        if (!narrow()) parts.push(`<text class="axis" x="${left() - 8}" y="${y + 16}" text-anchor="end">clocks</text>`);
        if (clock >= view.from && clock <= view.to) parts.push(`<line class="cursor" x1="${x(clock).toFixed(1)}" x2="${x(clock).toFixed(1)}" y1="0" y2="${y + 4}"/>`);
        panel.box.setAttribute("viewBox", `0 0 ${width} ${y + 22}`);
        panel.box.setAttribute("height", y + 22);
        panel.box.innerHTML = parts.join("");
      }
      handle.style.left = `${100 * view.from / end}%`;
      handle.style.width = `${100 * (view.to - view.from) / end}%`;
      renderNow();
      renderLife();
    };

    const renderNow = () => {
      now.replaceChildren(...traces.map((trace, index) => element("ul", {"aria-label": `At clock ${number(clock)} in ${titles[index]}`},
        element("li", {}, element("b", {}, `${titles[index]} at clock ${number(clock)}`)),
        ...trace.rows.filter(row => !/SM [1-9]/.test(row.name)).map(row => {
          const current = row.spans.filter(span => span.from <= clock && clock < span.to);
          if (!current.length) return element("li", {}, element("span", {class: "swatch", style: "--is: transparent"}), `${row.name}: `, element("em", {}, "nothing recorded"));
          const words = row.kind === "copies" ? `${current.length} in flight` : doing(current[0]);
          const places = row.kind === "copies" ? current.map(span => span.k === undefined ? "" : `k-tile ${span.k}`).filter(Boolean).join(", ") : where(current[0]);
          return element("li", {class: `act-${KINDS[current[0].letter][0]}`}, element("span", {class: "swatch"}), `${row.name}: ${words} `, element("em", {}, places));
        }))));
    };

    /// The k-tile that is followed: of the span that was chosen, or of the stage at the cursor.
    const renderLife = () => {
      let subject = chosen;
      if (!subject && followed !== null)
        subject = spans.filter(span => span.stage === followed && "iym".includes(span.letter) && span.from <= clock).sort((a, b) => b.from - a.from)[0];
      if (!subject || subject.k === undefined) { life.replaceChildren(); return; }
      const trace = traces.find(one => one.rows.includes(subject.row));
      const same = trace.rows.flatMap(row => row.spans).filter(span => span.cta === subject.cta && span.tile === subject.tile && span.k === subject.k);
      const of = (letter, kind) => same.filter(span => span.letter === letter && (!kind || span.row.kind === kind));
      const steps = [], [issue] = of("i"), flights = of("y"), waits = of("f"), engine = of("m", "tensor cores");
      const multiplied = engine.length ? engine : of("m");
      const time = list => `${number(Math.min(...list.map(one => one.from)))} to ${number(Math.max(...list.map(one => one.to)))}`;
      if (issue) steps.push(["issue", "Issued", time([issue]), issue]);
      if (flights.length) steps.push(["copy", "In flight", time(flights), flights[0]]);
      if (waits.length) {
        const full = flights.length ? Math.max(...flights.map(one => one.to)) : Math.max(...waits.map(one => one.to));
        steps.push(["wait-full", "Full", `at ${number(full)}${waits.some(one => one.from < full) ? `, waited for since ${number(Math.min(...waits.map(one => one.from)))}` : ""}`,
                    {...waits[0], from: full}]);
      }
      if (multiplied.length) steps.push(["multiply", engine.length ? "Multiplied" : "Multiplication issued", time(multiplied), multiplied[0]]);
      if (issue && subject.stage !== undefined) {
        const next = issue.row.spans.filter(span => span.letter === "i" && span.stage === subject.stage && span.cta === subject.cta && span.from > issue.from)[0];
        if (next) {
          const wait = issue.row.spans.find(span => span.letter === "e" && span.k === next.k && span.tile === next.tile && span.cta === next.cta);
          steps.push(["wait-empty", "Empty, taken again", `${wait ? `producer waited ${number(wait.to - wait.from)} clocks; ` : ""}k-tile ${next.k} at ${number(next.from)}`, next]);
        }
      }
      life.replaceChildren(element("p", {}, `The way of k-tile ${subject.k}${subject.stage === undefined ? "" : ` through stage ${subject.stage}`}, CTA ${subject.cta}${subject.tile ? `, tile ${subject.tile}` : ""}, ${titles[traces.indexOf(trace)].toLowerCase()}:`),
        ...steps.map(([name, words, when, span]) => element("button", {type: "button", class: `act-${name}`, onclick: () => { player.stop(); clock = span.from; keepInView(); tell(); }},
          element("b", {}, words), element("span", {}, when))));
    };

    // ---- pointing

    const hit = event => {
      for (const panel of panels) {
        const area = panel.box.getBoundingClientRect();
        const px = event.clientX - area.left, py = event.clientY - area.top;
        if (py < 0 || py > area.height) continue;
        const found = panel.hits.filter(one => px >= one.left && px <= one.right && py >= one.top && py <= one.bottom);
        return {px, found: found.sort((a, b) => (a.right - a.left) - (b.right - b.left))[0]};
      }
      return {};
    };
    const point = event => {
      const {found} = hit(event);
      const span = found ? found.span : null;
      if (span) {
        const area = plot.getBoundingClientRect();
        tip.innerHTML = `<b>${escape(span.row.name)}</b><br>${escape(named(span))}<br>${length(span)}${span.bytes ? `<br>${number(span.bytes)} bytes` : ""}`;
        tip.hidden = false;
        tip.style.left = `${Math.max(0, Math.min(area.width - tip.offsetWidth, event.clientX - area.left + 12))}px`;
        tip.style.top = `${event.clientY - area.top + 16}px`;
      } else tip.hidden = true;
      if (span !== pointed) { pointed = span; render(); }
    };
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerleave", () => { tip.hidden = true; pointed = null; render(); });
    plot.addEventListener("click", event => {
      const {px, found} = hit(event);
      if (px === undefined || px < left()) return;
      player.stop();
      clock = Math.max(0, Math.min(end, Math.round(at(px))));
      chosen = found ? found.span : null;
      frame.say(chosen ? `${chosen.row.name}: ${named(chosen)}. Clock ${length(chosen)}.` : `Clock ${number(clock)}.`);
      render();
    });
    overview.addEventListener("pointerdown", event => {
      overview.setPointerCapture(event.pointerId);
      const area = overview.getBoundingClientRect();
      const go = one => showFrom((one.clientX - area.left) / area.width * end - (view.to - view.from) / 2);
      go(event);
      overview.onpointermove = go;
      overview.onpointerup = () => { overview.onpointermove = null; };
    });
    figures.keys(frame.card, {
      ...player.keys, "Shift+ArrowRight": () => pan(0.2), "Shift+ArrowLeft": () => pan(-0.2), "+": () => zoom(1 / 1.6), "-": () => zoom(1.6), 0: whole,
      f: () => { if (stages > 1) follow(followed === null ? "0" : followed + 1 < stages ? String(followed + 1) : ""); }});

    new ResizeObserver(() => { const wide = Math.floor(plot.clientWidth); if (wide !== width) { width = wide; render(); } }).observe(plot);
    frame.say("Step through the events, or point at a bar. A click on a bar shows the way of its k-tile.");
  };
}
