// The index of the search is ten times as large as a page, so a page fetches it when its reader turns to the search. tools/site puts this
// before the generator's script, which calls it where it would fetch the index.
const searchWanted = fetchIndex => {
  const button = document.querySelector(".md-search__button");
  const listening = new AbortController();
  const want = () => {
    listening.abort();
    fetchIndex();
  };
  for (const kind of ["pointerover", "focusin", "click"]) {
    addEventListener(kind, event => event.target.closest?.(".md-search, label[for=__search]") && want(), {signal: listening.signal});
  }
  addEventListener("keydown", event => {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "k") return;
    event.preventDefault();
    button.click();  // opens the search as soon as it is there
  }, {signal: listening.signal});
};
