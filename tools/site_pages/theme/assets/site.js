// Kernels: one button opens or closes the machine code of all lines.
for (const button of document.querySelectorAll(".sass-switch")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const all = [...document.querySelectorAll("details.sass")];
    const open = all.some(one => !one.open);
    for (const one of all) one.open = open;
    button.textContent = open ? "Close all" : "Open all";
  });
}

// What is wider than the page scrolls by keys, too.
const reach = () => {
  const parts = [...document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .source")];
  const wide = parts.map(one => one.scrollWidth > one.clientWidth); // all at once: after a change, the next width would need a new layout
  parts.forEach((one, at) => {
    if (wide[at]) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  });
};
addEventListener("load", reach);
addEventListener("resize", reach);
