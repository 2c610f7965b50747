// Orders of tiles: which tiles each wave multiplies, and which rows of A and columns of B it reads, as tools/play raster wrote them.
"use strict";
{
  const {element} = figures;
  const MIB = 1 << 20;

  figures.kinds.raster = (place, data) => {
    let file = data.raster[0], order = file.orders[5], wave = 0;
    const frame = figures.frame(place, {title: "Orders of tiles, wave by wave",
      sentence: "D in tiles, each multiplied by one SM. Pick an order and step through the waves. A wave reads the marked rows of A and columns of B: fewest bytes where both have about as many. A wave that straddles two groups reads more.",
      keys: [["← →", "one wave back, one wave on"], ["Space", "play, pause"], ["Home End", "the first wave, the last wave"], ["O", "the next order"]],
      source: data.source});
    const waves = () => order.waves.length;
    const step = direction => {
      if (wave + direction < 0 || wave + direction >= waves()) return false;
      wave += direction;
      tell();
      return true;
    };
    const player = figures.player(step, end => { wave = end ? waves() - 1 : 0; tell(); }, 900);
    const nameOf = one => one.order.replace("_", " ").replace("group", "groups of ");
    const pick = name => { order = file.orders.find(one => one.order === name); tell(); };
    const shapes = figures.choice("M × N × K", data.raster.map((one, index) => [index, one.shape.join(" × ")]), value => {
      player.stop();
      file = data.raster[Number(value)];
      wave = 0;
      pick(order.order);
    });
    const orders = figures.choice("Order", file.orders.map(one => [one.order, nameOf(one)]), pick);
    frame.tools.append(...player.buttons, element("span", {class: "gap"}), orders, shapes);
    const map = element("div", {class: "raster-map"}), table = element("div");
    frame.stage.append(map);
    frame.more.append(table);

    const bytes = ([tiles, rows, columns]) => ({tiles, rows, columns, read: (rows * file.row_bytes + columns * file.column_bytes) / MIB,
                                                requested: tiles * (file.row_bytes + file.column_bytes) / MIB});
    const total = one => one.waves.map(bytes).reduce((sum, {read}) => sum + read, 0);
    const mib = value => `${Number(value.toFixed(value < 10 ? 2 : 0)).toLocaleString("en-US")} MiB`;

    const tell = () => {
      const {tiles, rows, columns, read, requested} = bytes(order.waves[wave]);
      frame.say(`Wave ${wave} of ${nameOf(order)}: ${tiles} tiles in ${rows} row${rows > 1 ? "s" : ""} and ${columns} column${columns > 1 ? "s" : ""} of D. They need ${rows} × ${mib(file.row_bytes / MIB)} of A and ` +
        `${columns} × ${mib(file.column_bytes / MIB)} of B, ${mib(read)} together. The SMs request ${mib(requested)}, so ${Math.round(100 - 100 * read / requested)} % of what they request hits in the L2, if it reads each byte from memory only once.`);
      render();
    };
    const render = () => {
      const [m, n] = file.grid, edge = 12, scale = 512 / file.shape[1];
      const wide = file.tile[1] * scale, high = file.tile[0] * scale; // so that D has its shape
      const place = tile => [edge + tile % n * wide, edge + Math.floor(tile / n) * high];
      const box = (x, y, w, h) => `M${x} ${y}h${w - 1}v${h - 1}h${1 - w}z`;
      const boxes = tiles => tiles.map(tile => box(...place(tile), wide, high)).join("");
      const begin = wave * file.sms, now = order.tiles.slice(begin, begin + file.sms);
      const rows = [...new Set(now.map(tile => Math.floor(tile / n)))], columns = [...new Set(now.map(tile => tile % n))];
      const line = now.map(tile => { const [x, y] = place(tile); return `${x + wide / 2 - 0.5} ${y + high / 2 - 0.5}`; }).join("L");
      const all = Array.from({length: m * n}, (_, tile) => tile);
      map.innerHTML = `<svg viewBox="0 0 ${edge + n * wide} ${edge + m * high}" role="img" aria-label="D: ${m} rows and ${n} columns of tiles; the wave is in ${rows.length} rows and ${columns.length} columns">` +
        `<path class="raster-rest" d="${boxes(all)}"/><path class="raster-past" d="${boxes(order.tiles.slice(0, begin))}"/>` +
        `<path class="raster-a" d="${rows.map(row => box(0, edge + row * high, edge - 3, high)).join("")}"/>` +
        `<path class="raster-b" d="${columns.map(column => box(edge + column * wide, 0, wide, edge - 3)).join("")}"/>` +
        `<path class="raster-now" d="${boxes(now)}"/><path class="raster-line" d="M${line}"/></svg>` +
        `<p class="timeline-legend"><span><span class="swatch raster-now"></span>this wave</span><span><span class="swatch raster-past"></span>earlier waves</span><span><span class="swatch raster-a"></span>rows of A</span>` +
        "<span><span class=\"swatch raster-b\"></span>columns of B</span></p>";
      orders.querySelector("select").value = order.order;
      table.replaceChildren(element("div", {class: "figure-scroll", tabindex: "0", role: "region", "aria-label": "All orders"}, element("table", {class: "figure-table"},
        element("thead", {}, element("tr", {}, ...["order", "rows in this wave", "columns", "read in this wave", "in all waves"].map(words => element("th", {scope: "col"}, words)))),
        element("tbody", {}, ...file.orders.map(one => {
          const {rows, columns, read} = bytes(one.waves[wave]);
          return element("tr", {}, element("th", {scope: "row", class: one === order ? "here" : ""}, nameOf(one)), ...[rows, columns, mib(read), mib(total(one))].map(words => element("td", {class: one === order ? "here" : ""}, String(words))));
        })))));
    };
    figures.keys(frame.card, {...player.keys, o: () => pick(file.orders[(file.orders.indexOf(order) + 1) % file.orders.length].order)});
    tell();
  };
}
