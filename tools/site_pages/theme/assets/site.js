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
  for (const one of document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .source")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
};
addEventListener("load", reach);
addEventListener("resize", reach);
