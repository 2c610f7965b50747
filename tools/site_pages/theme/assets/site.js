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
