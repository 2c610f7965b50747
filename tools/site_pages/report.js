{
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => { document.documentElement.dataset.mdColorScheme = dark.matches ? "slate" : "default"; };
  dark.addEventListener("change", show);
  show();
  const table = document.querySelector(".events");
  if (table) {
    table.scrollTop = table.scrollHeight;
    const rows = [...table.querySelectorAll("tbody tr")];
    const names = [...new Set(rows.map(row => row.dataset.barrier).filter(Boolean))].sort();
    const select = document.createElement("select");
    for (const [value, text] of [["", "all events"], ...names.map(name => [name, name])]) select.add(new Option(text, value));
    select.onchange = () => { for (const row of rows) row.hidden = select.value && row.dataset.barrier && row.dataset.barrier !== select.value; table.scrollTop = table.scrollHeight; };
    const label = document.createElement("label");
    label.append("Show ", select);
    if (names.length > 1) table.before(label);
  }
}
