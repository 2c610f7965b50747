// Which 16 bytes of a tile lie where, which banks a column touches, and what a wgmma descriptor finds: as tools/play wrote it.
"use strict";
{
  const {element, number} = figures;
  const LINE = 128, UNIT = 16, ROWS = 8;

  figures.kinds.swizzle = (place, data) => {
    const withDescriptor = Boolean(data.descriptor);
    const modes = data.swizzle.map(one => ({...one, name: one.swizzle.split(" ")[0]}));
    let mode = modes[modes.length - 1], unit = 0, slab = 0, cursor = {line: 0, column: 0};
    const frame = figures.frame(place, {
      title: withDescriptor ? "A descriptor, and the 16 bytes that it finds" : "Where the 16-byte units of a tile lie, and in which banks",
      sentence: withDescriptor
        ? "Pick a swizzle and 16 elements of K: the descriptor's fields, and the first eight rows that wgmma reads with them."
        : "A tile of eight rows after its TMA copy. A cell is 16 bytes, four banks wide: row.unit. Pick a swizzle and a column of the tile.",
      keys: [["← → ↑ ↓", "from cell to cell, inside the map"], ["1 2 3 4", "no swizzle, 32, 64, 128 bytes"], [withDescriptor ? "K" : "C", withDescriptor ? "the next 16 elements of K" : "the next column"]],
      source: data.source});

    const picks = modes.map((one, index) => figures.button(one.name === "none" ? "none" : `${one.name} B`, one.name === "none" ? "No swizzle" : `Swizzle of ${one.swizzle}`, () => pick(index), {"data-do": `mode-${one.name}`}));
    frame.tools.append(element("span", {class: "figure-choice"}, "Swizzle "), ...picks);
    const second = figures.choice(withDescriptor ? "Elements of K" : "Column", [], value => { if (withDescriptor) slab = Number(value); else unit = Number(value); tell(); });
    frame.tools.append(element("span", {class: "gap"}), second);

    const map = element("div", {class: "swizzle-map", role: "grid", "aria-label": "Shared memory: a row is 128 bytes, all 32 banks"});
    const banks = element("div", {class: "swizzle-banks"});
    const bits = element("div", {class: "descriptor-bits"});
    frame.stage.append(map);
    if (withDescriptor) frame.more.append(bits);
    else frame.stage.append(banks);

    const units = () => mode.row_bytes / UNIT;
    const descriptor = () => data.descriptor[mode.name][slab];
    const lines = () => withDescriptor && mode.name === "none" ? 2 : mode.lines.length;
    /// {row, unit} of a cell, as the program named it; null where nothing of the tile lies.
    const cell = (line, column) => {
      if (withDescriptor && mode.name === "none") {
        const address = mode.begin + line * LINE + column * UNIT;
        for (let row = 0; row < ROWS; ++row) {
          const group = descriptor().rows[row].indexOf(address);
          if (group >= 0) return {row, unit: group};
        }
        return null;
      }
      const found = /^(\d+)\.(\d+)$/.exec(mode.lines[line][column]);
      return found ? {row: Number(found[1]), unit: Number(found[2])} : null;
    };
    const chosen = (line, column) => {
      const found = cell(line, column);
      if (!found) return false;
      if (!withDescriptor) return found.unit === unit;
      const address = mode.begin + line * LINE + column * UNIT;
      return descriptor().rows.some(row => row.includes(address));
    };

    const pick = index => { mode = modes[index]; unit = Math.min(unit, units() - 1); slab = 0; cursor = {line: 0, column: 0}; tell(); };
    const touched = () => {
      const counts = new Array(LINE / UNIT).fill(0);
      for (let line = 0; line < lines(); ++line) for (let column = 0; column < 8; ++column) if (chosen(line, column)) ++counts[column];
      return counts;
    };
    const tell = () => {
      if (withDescriptor) {
        const one = descriptor(), last = one.rows[ROWS - 1];
        const verdict = [...one.wrong, ...one.unusual, ...one.notes][0];
        frame.say(`${one.descriptor}: wgmma finds row 0's first 16 bytes at ${number(one.rows[0][0])} and its second at ${number(one.rows[0][1])}; those of row 7 at ${number(last[0])} and ${number(last[1])}.${verdict ? ` The program notes: ${verdict}.` : ""}`);
      } else {
        const counts = touched(), most = Math.max(...counts), groups = counts.filter(Boolean).length;
        frame.say(`Unit ${unit} of rows 0 to 7: ${groups === 1 ? "all eight lie in the same four banks" : `they lie in ${groups} different groups of four banks`}. ` +
          (most === 1 ? "Eight lanes read them in one wavefront, without a conflict." : `The fullest group is touched ${most} times, so reading the column takes ${most} wavefronts.`));
      }
      render();
    };
    const tellCell = () => {
      const found = cell(cursor.line, cursor.column), address = mode.begin + cursor.line * LINE + cursor.column * UNIT;
      if (!found) return;
      frame.say(`Row ${found.row}, bytes ${found.unit * UNIT} to ${found.unit * UNIT + UNIT - 1}: at shared + ${number(address)}, in banks ${cursor.column * 4} to ${cursor.column * 4 + 3}.`);
    };

    const render = () => {
      picks.forEach((button, index) => button.setAttribute("aria-pressed", modes[index] === mode));
      const select = second.querySelector("select");
      const options = withDescriptor ? data.descriptor[mode.name].map((_, index) => [index, `${16 * index} to ${16 * index + 15}`]) : Array.from({length: units()}, (_, index) => [index, `unit ${index}`]);
      select.replaceChildren(...options.map(([value, words]) => element("option", {value}, words)));
      select.value = withDescriptor ? slab : unit;
      const rows = [element("div", {class: "swizzle-line head", role: "row"}, element("span", {role: "columnheader", title: "the address of the line in shared memory"}, "byte"),
        ...Array.from({length: 8}, (_, column) => element("span", {role: "columnheader"}, `${4 * column}–${4 * column + 3}`)))];
      for (let line = 0; line < lines(); ++line) {
        const cells = [];
        for (let column = 0; column < 8; ++column) {
          const found = cell(line, column), focused = cursor.line === line && cursor.column === column;
          cells.push(element("button", {type: "button", role: "gridcell", tabindex: focused ? "0" : "-1", "data-cell": `${line}.${column}`,
            style: found ? `--row: ${found.row}` : null, class: `swizzle-cell${found ? "" : " nothing"}${chosen(line, column) ? " chosen" : ""}`,
            "aria-selected": chosen(line, column), "aria-label": found ? `row ${found.row}, unit ${found.unit}` : "nothing",
            onclick: () => { cursor = {line, column}; if (!withDescriptor && found) unit = found.unit; tell(); tellCell(); map.querySelector(`[data-cell="${line}.${column}"]`).focus(); }},
            found ? `${found.row}.${found.unit}` : "·"));
        }
        rows.push(element("div", {class: "swizzle-line", role: "row"}, element("span", {role: "rowheader"}, String(mode.begin + line * LINE)), ...cells));
      }
      map.replaceChildren(...rows);
      if (withDescriptor) renderBits();
      else {
        const counts = touched();
        banks.replaceChildren(element("span", {class: "swizzle-label"}, "banks"), ...counts.map((count, column) => element("span", {class: `swizzle-bank touched-${Math.min(count, 2)}`},
          ...Array.from({length: 4}, (_, bank) => element("i", {title: `bank ${4 * column + bank}`})), element("b", {}, count ? `${count}×` : "–"))));
      }
    };

    const renderBits = () => {
      const one = descriptor(), strip = [];
      let high = 63;
      const fields = [...one.fields].sort((a, b) => b.high - a.high);
      fields.forEach((field, index) => {
        if (high > field.high) strip.push(element("span", {class: "unused", style: `flex-grow: ${high - field.high}`}));
        strip.push(element("span", {class: `field field-${index}`, style: `flex-grow: ${field.high - field.low + 1}`, title: `bits ${field.low} to ${field.high}: ${field.name}`}, element("b", {}, `${field.high - field.low > 5 ? "0x" : ""}${field.value.toString(16)}`), element("small", {}, field.high - field.low > 5 ? field.name : "")));
        high = field.low - 1;
      });
      bits.replaceChildren(element("p", {class: "descriptor-word"}, element("code", {}, one.descriptor)), element("div", {class: "descriptor-strip", "aria-hidden": "true"}, ...strip),
        element("div", {class: "figure-scroll", tabindex: "0", role: "region", "aria-label": "The fields of the descriptor"}, element("table", {class: "figure-table"}, element("thead", {}, element("tr", {}, ...["bits", "field", "value", "meaning"].map(words => element("th", {scope: "col"}, words)))),
          element("tbody", {}, ...fields.map((field, index) => element("tr", {}, element("td", {}, element("span", {class: `swatch field-${index}`}), `${field.low}–${field.high}`), element("th", {scope: "row"}, field.name),
            element("td", {}, `0x${field.value.toString(16)}`), element("td", {class: "wraps"}, field.meaning)))))));
    };

    const go = (down, right) => {
      cursor = {line: Math.max(0, Math.min(lines() - 1, cursor.line + down)), column: Math.max(0, Math.min(7, cursor.column + right))};
      render();
      tellCell();
      map.querySelector(`[data-cell="${cursor.line}.${cursor.column}"]`).focus();
    };
    const next = () => { if (withDescriptor) slab = (slab + 1) % data.descriptor[mode.name].length; else unit = (unit + 1) % units(); tell(); };
    figures.keys(frame.card, {ArrowRight: () => go(0, 1), ArrowLeft: () => go(0, -1), ArrowDown: () => go(1, 0), ArrowUp: () => go(-1, 0),
      1: () => pick(0), 2: () => pick(1), 3: () => pick(2), 4: () => pick(3), c: next, k: next});
    tell();
  };
}
