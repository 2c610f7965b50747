// Which results the site's search has, and in which order. tools/site puts this before the generator's search, which calls two functions
// from here instead of its own: there, every word had to occur, titles came first whatever the word, and "the" found "The code".
const COMMON = new Set(("a an and are as at be by can do does for from has have how i if in is it its my of on or that the they this to was what " +
  "when where which who why will with you").split(" "));
const ALSO = {announce: "expect"};  // a reader's word, and the course's

/// What a word of a query looks for: nothing where it is common, itself where it is short, and otherwise all words that begin with it.
const searchedWord = (word, beginning) => {
  const text = word.value.toLowerCase();
  if (COMMON.has(text)) return undefined;
  return {field: "*", value: text.length < 3 ? text : beginning(ALSO[text] || text), range: {start: word.start, end: word.end, value: word.index}};
};

/// How much of a page's kind explains what a word means. Nothing is left of a section that readers have no use for.
const explains = ({location, title}) =>
  (/^(CHANGELOG|CONTRIBUTING|docs\/(lab|museum|decisions|questions|results|style))/.test(location) ? 0.7
    : /^docs\/(?!emulator|cheat|recap|part-|verification|measuring|site|commands)/.test(location) ? 1.15 : 1) *
  (title === "Retired words" ? 0 : /^(Sources|Exercises|What you can do now|\w+ questions)$/.test(title) ? 0.4 : 1);

/// How many words of a title are not common.
const titleWords = title => title.toLowerCase().split(/[^\p{L}\d]+/u).filter(word => word && !COMMON.has(word)).length;

/// Compares results by how often a section and its page have the words (as BM25 does), and by how many of the words the section has.
const searchOrder = items => {
  const pages = items.map(item => item.location.split("#")[0]), kinds = items.map(explains);
  const sizes = items.map(item => item.text.length + 120), pageSizes = {};
  pages.forEach((page, at) => { pageSizes[page] = (pageSizes[page] || 0) + sizes[at]; });
  const sum = (list, value = one => one) => list.reduce((all, one, at) => all + value(one, at), 0);
  const mean = list => sum(list) / list.length;
  const usual = mean(sizes), usualPage = mean(Object.values(pageSizes));
  const often = (times, size) => times / (times + 0.3 + 0.9 * size);
  return function match(result) {
    const words = result.query.values, sections = words.map(() => 0), onPage = {};
    const found = new Map(result.items.map(({id, matches}) => {
      const times = words.map(() => ({title: 0, text: 0, path: 0}));
      const page = onPage[pages[id]] ||= words.map(() => 0);
      for (const {field, value} of matches) {
        value.text.forEach((_, term) => words.forEach((word, at) => { if (word.value.get(term)) ++times[at][field]; }));
      }
      times.forEach(({title, text}, at) => {
        sections[at] += title + text > 0;
        page[at] += text + 2 * title;
      });
      return [id, times];
    }));
    const rare = sections.map(one => Math.log(1 + (items.length - one + 0.5) / (one + 4)));
    const score = new Map([...found].map(([id, times]) => {
      const named = times.every(({title}) => title > 0) && words.length >= titleWords(items[id].title);  // by its title, and nothing more
      const here = times.map(({title, text, path}, at) => rare[at] * (often(text + 3 * title, sizes[id] / usual) + 0.3 * (path > 0)));
      const page = sum(rare, (one, at) => one * often(onPage[pages[id]][at], pageSizes[pages[id]] / usualPage));
      return [id, kinds[id] * (named ? 2 : 1) * sum(rare, (one, at) => here[at] && one) / sum(rare) * (sum(here) + 0.5 * page)];
    }));
    const best = Math.max(0, ...score.values());
    result.items = result.items.filter(({id}) => score.get(id) > 0 && score.get(id) >= 0.4 * best);
    return (a, b) => score.get(b.id) - score.get(a.id);
  };
};
