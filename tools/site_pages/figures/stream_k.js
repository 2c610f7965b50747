// The same tiles as whole tiles and as stream-K ranges, from what tools/play stream_k wrote.
"use strict";
{
  const {element, escape} = figures;
  const NAMES = {"stream-K": "all tiles (stream-K)", hybrid: "as few as step 18 does (hybrid)"};

  figures.kinds.stream_k = (place, data) => {
    const runs = data.stream_k;
    let run = runs.find(one => one.tiles === 5 && one.k_tiles === 64), cut = "stream-K", at = 0;
    const frame = figures.frame(place, {title: "Whole tiles, and equal ranges of K",
      sentence: "Above, each SM multiplies whole tiles. Below, all k-tiles are cut into equal ranges, and the SM that multiplies the last k-tiles of a tile adds the partials of the others. Time is counted in k-tiles, too: multiplying one takes one. An SM begins with the part that another SM needs. Change the number of tiles, and see which of the two ends first.",
      keys: [["← →", "to the event before, to the next event"], ["Space", "play, pause"], ["Home End", "to the beginning, to the end"], ["T", "one tile more"]],
      source: data.source});
    const division = name => run.divisions.find(one => one.name === name);
    const acts = name => division(name).workers.flatMap((row, worker) => row.map(([what, begin, end, tile, first, last]) => ({name, what, begin, end, tile, first, last, worker})));
    /// What begins, in order, and the end.
    const events = () => [...acts(cut).sort((a, b) => a.begin - b.begin || a.worker - b.worker), null];
    const step = direction => {
      if (at + direction < 0 || at + direction >= events().length) return false;
      at += direction;
      tell();
      return true;
    };
    const player = figures.player(step, end => { at = end ? events().length - 1 : 0; tell(); }, 1000);
    const choose = (tiles, k_tiles) => { player.stop(); run = runs.find(one => one.tiles === tiles && one.k_tiles === k_tiles); at = 0; tell(); };
    const numbers = key => [...new Set(runs.map(one => one[key]))];
    const tiles = figures.choice("Tiles", numbers("tiles").map(one => [one, one]), value => choose(Number(value), run.k_tiles));
    const depth = figures.choice("k-tiles in each", numbers("k_tiles").map(one => [one, one]), value => choose(run.tiles, Number(value)));
    const cuts = figures.choice("Cut", Object.entries(NAMES), value => { player.stop(); cut = value; at = 0; tell(); });
    frame.tools.append(...player.buttons, element("span", {class: "gap"}), tiles, depth, cuts);
    const chart = element("div", {class: "streamk-chart"});
    frame.stage.append(chart);

    const part = act => `tile ${act.tile}${act.last - act.first < run.k_tiles ? `, k-tiles ${act.first} to ${act.last - 1}` : ""}`;
    const words = act => ({multiply: `SM ${act.worker} begins to multiply ${part(act)}`, store: `SM ${act.worker} stores its partials of ${part(act)}, for the SM that multiplies its last k-tiles`,
      wait: `SM ${act.worker} waits for partials of tile ${act.tile}`, "fix up": `SM ${act.worker} has the last part of tile ${act.tile}: it adds the partials of the others and stores the tile`})[act.what];
    const ends = () => {
      const whole = division("data-parallel").ends, other = division(cut).ends;
      const verdict = !division(cut).stream_k_tiles ? `${cut} cuts no tile here.` : other < whole ? `Cutting saves ${whole - other}.` : other === whole ? "Cutting saves nothing." : `Cutting costs ${other - whole} more: the partials take longer than the last wave.`;
      return `Whole tiles end after ${whole} k-tiles, ${cut} after ${other}. ${verdict}`;
    };
    const tell = () => {
      const now = events()[at];
      frame.say(now ? `${at ? "" : `${ends()} `}After ${now.begin} k-tile${now.begin === 1 ? "" : "s"}: ${words(now)}.` : ends());
      render(now);
    };
    const render = now => {
      const left = 44, wide = Math.max(220, chart.clientWidth - left - 4), row = 26, last = Math.max(...run.divisions.map(one => one.ends));
      const x = time => left + time / last * wide, time = now ? now.begin : division(cut).ends;
      const parts = [];
      let top = 0;
      for (const name of ["data-parallel", cut]) {
        parts.push(`<text class="strong" x="0" y="${top + 13}">${name}: ends after ${division(name).ends} k-tiles</text>`);
        top += 20;
        division(name).workers.forEach((_, worker) => parts.push(`<text x="${left - 6}" y="${top + worker * row + 16}" text-anchor="end">SM ${worker}</text>`));
        for (const act of acts(name)) {
          const from = x(act.begin), size = x(act.end) - from, is = act === now || now && act.name === now.name && act.worker === now.worker && act.begin === now.begin;
          parts.push(`<rect class="streamk-${act.what.replace(" ", "-")}${is ? " lit" : ""}" style="--tile: ${act.tile}" x="${from}" y="${top + act.worker * row}" width="${size}" height="${row - 5}"><title>${escape(words(act))}: ${act.begin} to ${act.end}</title></rect>`);
          if (act.what === "multiply" && size > 14) parts.push(`<text class="on-bar" x="${from + size / 2}" y="${top + act.worker * row + 15}" text-anchor="middle">${act.last - act.first < run.k_tiles && size > 70 ? `${act.tile}: ${act.first}–${act.last - 1}` : act.last - act.first < run.k_tiles ? `${act.tile}…` : act.tile}</text>`);
        }
        const bottom = top + division(name).workers.length * row;
        parts.push(`<line class="cursor" x1="${x(time)}" x2="${x(time)}" y1="${top - 3}" y2="${bottom - 3}"/>`);
        top = bottom + 12;
      }
      chart.innerHTML = `<svg viewBox="0 0 ${left + wide + 4} ${top}" role="img" aria-label="${escape(ends())}">${parts.join("")}</svg>` +
        `<p class="timeline-legend"><span>a number is a tile, a range its k-tiles, and “…” a part of it</span><span><span class="swatch streamk-store"></span>stores partials (${run.store} k-tiles)</span><span><span class="swatch streamk-fix-up"></span>fix-up (${run.fixup} for each peer)</span>${["data-parallel", cut].some(name => acts(name).some(act => act.what === "wait")) ? '<span><span class="swatch streamk-wait"></span>waits for partials</span>' : ""}</p>`;
      for (const [choice, value] of [[tiles, run.tiles], [depth, run.k_tiles], [cuts, cut]]) choice.querySelector("select").value = value;
    };
    figures.keys(frame.card, {...player.keys, t: () => { const all = numbers("tiles"); choose(all[(all.indexOf(run.tiles) + 1) % all.length], run.k_tiles); }});
    tell();
  };
}
