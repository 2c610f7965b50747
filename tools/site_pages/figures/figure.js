// What all figures that move share: finding them in a page, loading what they need when the reader comes near, and their frame.
// A page that is opened as a file may load scripts and no other files, so figures are classic scripts and so are their data.
"use strict";
window.figures = {kinds: {}, data: {}};
{
  const here = document.currentScript.src.replace(/[^/]*$/, "");
  const coming = new Map();

  /// Loads a script beside this one, once. The promise says whether it came.
  figures.load = name => {
    if (figures.kinds[name] || figures.data[name.replace("data/", "")]) return Promise.resolve(true); // a page that is one file has it
    if (!coming.has(name)) {
      coming.set(name, new Promise(done => {
        const script = document.createElement("script");
        script.src = `${here}${name}.js`;
        script.onload = () => done(true);
        script.onerror = () => done(false);
        document.head.append(script);
      }));
    }
    return coming.get(name);
  };

  /// An element: attributes, listeners (on...: function), children (elements or text).
  figures.element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name.startsWith("aria-") && value != null) made.setAttribute(name, String(value)); // which say "true" and "false"
      else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter(child => child != null));
    return made;
  };
  const element = figures.element;

  const ICONS = {first: "M3 3h2v10H3zM13 3v10L6 8z", back: "M10.5 2.5 12 4 8 8l4 4-1.5 1.5L5 8z", play: "M4 3v10l8-5z", pause: "M4 3h3v10H4zM9 3h3v10H9z", next: "M5.5 2.5 4 4l4 4-4 4 1.5 1.5L11 8z"};
  const icon = name => {
    const box = element("span", {class: "figure-icon", "aria-hidden": "true"});
    box.innerHTML = `<svg viewBox="0 0 16 16" width="14" height="14"><path fill="currentColor" d="${ICONS[name]}"/></svg>`;
    return box;
  };

  figures.button = (text, label, act, attributes = {}) =>
    element("button", {type: "button", class: "figure-button", "aria-label": label, title: label, onclick: act, ...attributes}, text);

  /// A labelled choice; act(value) is called when the reader chooses.
  figures.choice = (label, options, act) => {
    const select = element("select", {onchange: () => act(select.value)},
                           ...options.map(([value, text]) => element("option", {value}, text)));
    return element("label", {class: "figure-choice"}, `${label} `, select);
  };

  figures.escape = text => String(text).replace(/[&<>"]/g, one => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[one]);
  figures.number = value => Math.round(value).toLocaleString("en-US");
  const calmly = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  /// Buttons and keys for a figure's steps. step(direction) returns false at an end; to(0) and to(1) go to the ends. Playing makes a step
  /// every `pace` milliseconds, or moves evenly by glide(milliseconds) where the reader has not asked for less motion.
  figures.player = (step, to, pace, glide) => {
    let timer = 0, last = 0;
    const act = (name, label, acts) => figures.button(icon(name), label, acts, {"data-do": name});
    const toggle = () => {
      if (timer) { stop(); return; }
      if (!step(1)) to(0);
      last = performance.now();
      const calm = !glide || calmly();
      timer = setInterval(() => {
        const passed = performance.now() - last;
        last += passed;
        if (!play.isConnected || !(calm ? step(1) : glide(passed))) stop();
      }, calm ? pace : 30);
      show();
    };
    const play = act("play", "Play", toggle);
    const show = () => {
      play.replaceChildren(icon(timer ? "pause" : "play"));
      play.title = timer ? "Pause" : "Play";
      play.setAttribute("aria-label", play.title);
    };
    const stop = () => { clearInterval(timer); timer = 0; show(); };
    const still = acts => () => { stop(); acts(); };
    return {stop, buttons: [act("first", "To the beginning", still(() => to(0))), act("back", "One step back", still(() => step(-1))), play,
                            act("next", "One step on", still(() => step(1)))],
            keys: {ArrowRight: still(() => step(1)), ArrowLeft: still(() => step(-1)), " ": toggle, Home: still(() => to(0)), End: still(() => to(1))}};
  };

  /// Listens to keys where the focus is inside `part` and no control has use for the key. keys: {key: function}. On the buttons of the
  /// tools, Space does what it does elsewhere in the figure, because a reader who has clicked one goes on with keys; Enter presses them.
  figures.keys = (part, keys) => { for (const kind of ["keydown", "keyup"]) part.addEventListener(kind, event => {
    const tag = event.target.tagName, space = event.key === " " && keys[" "] && event.target.closest(".figure-tools");
    if (event.ctrlKey || event.metaKey || event.altKey || tag === "SELECT" || tag === "TEXTAREA" || tag === "INPUT") return;
    if (kind === "keyup") { if (space) event.preventDefault(); return; }  // which would press the button
    if ("np,.".includes(event.key)) event.stopPropagation();  // which the theme takes to the next page and the one before
    if ((tag === "BUTTON" || tag === "SUMMARY") && (event.key === " " && !space || event.key === "Enter")) return;
    const act = keys[(event.shiftKey && event.key.startsWith("Arrow") ? "Shift+" : "") + event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }); };

  /// The card of a figure: a head, tools, a stage, a line that screen readers say aloud, room for more, the source of the data, the keys.
  /// It can show the picture of the Markdown instead; where the text describes the picture, both are shown.
  figures.frame = (place, {title, sentence, keys, source}) => {
    const tools = element("div", {class: "figure-tools", role: "toolbar", "aria-label": `Controls: ${title}`});
    const stage = element("div", {class: "figure-stage"});
    const said = element("p", {class: "figure-said", role: "status"});
    const more = element("div");
    const picture = place.querySelector("img");
    const still = element("button", {type: "button", class: "figure-still", "aria-pressed": "false", onclick: () => {
      const now = still.getAttribute("aria-pressed") !== "true";
      still.setAttribute("aria-pressed", now);
      place.classList.toggle("figure-shows-still", now);
    }}, "Still picture");
    const card = element("div", {class: "figure-card", role: "group", tabindex: -1, "aria-label": title},
      element("div", {class: "figure-head"}, element("strong", {}, title), place.dataset.keeps ? null : still),
      sentence ? element("p", {class: "figure-sentence"}, sentence) : null,
      element("div", {class: "figure-living"}, tools, stage, said, more,
        source ? element("p", {class: "figure-source"}, source) : null,
        element("details", {class: "figure-keys"}, element("summary", {}, "Keys"),
          element("dl", {}, ...[...keys, ["Enter", "press the button that has the focus"]].flatMap(([key, what]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)])))));
    place.append(card);
    if (picture && !place.dataset.keeps) card.append(picture);
    place.classList.add("figure-is-living");
    let last = "";
    const say = text => { if (text !== last) said.textContent = last = text; };
    return {tools, stage, more, say, card};
  };

  const begin = async place => {
    const {figure, name} = place.dataset;
    const [kind, data] = await Promise.all([figures.load(figure), figures.load(`data/${name}`)]);
    if (kind && data && figures.kinds[figure]) figures.kinds[figure](place, figures.data[name]);
    place.dataset.ready = "";
  };

  const places = document.querySelectorAll("figure[data-figure]");
  const watch = new IntersectionObserver(seen => {
    for (const {isIntersecting, target} of seen) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      begin(target);
    }
  }, {rootMargin: "800px"});
  for (const place of places) watch.observe(place);
}
