// The site's search: a worker in the place of the generator's, whose order and excerpts cannot be set. It answers the messages of the
// generator's page. A result is a section, and its excerpt begins with the sentence that has most of the query.
const COMMON = new Set(("a an and any are as at be between by can do does doesn don for from get has have how i if in into is isn it its many much my of on one " +
  "or s should so t than that the then there they this to too use was what when where which who why will with you").split(" "));
const PIECE = /<(\/?)(\w*)[^>]*>|&\w+;|[.?!;:](?=[\s<]|$)|\n|\d+(?:\.\d+)+|[\p{L}\d]+?(?:(?<=\d)(?=[A-Z]{2})|(?![\p{L}\d]))/gu;
const ENDING = /(?:isations?|izations?|ications?|ations?|ators?|at(?:ing|e[ds]?)|i[sz](?:ing|e[ds]?)|[ae]nces?|ents?|ions?|ies|ing|ed|ers?|es|s|y|e)$/;

/// A word without its endings, which only has to be the same for the forms of a word.
const stem = word => {
  for (let before = ""; before !== word && !/\d/.test(word);) {
    before = word;
    const shorter = word.replace(ENDING, "");
    if (shorter.length > 2) word = shorter;
  }
  return word.length > 3 ? word.replace(/(\p{L})\1$/u, "$1") : word;
};

// Words of readers, and those of the course that mean the same or stand in the answer; for whoever types the first.
const ALSO = new Map(`aligned:multiple alignment:multiple allowed:legal announce:expect barrier:mbarrier block:cta bounds:edge,incomplete cache:l2 cga:cluster change:update combine:add corrupt:overwrite,wrong
  crash:error cut:split deadlock:hang dequantize:widen dequantization:widen w4a16:int4,weights boxdim:box determinism:bits,order deterministic:bits,order differ:same experts:groups
  factors:scales fast:faster,pays fit:limit free:release fuse:epilogue fused:epilogue,visitor fusion:epilogue,visitor garbage:wrong
  gemv:vector hang:deadlock,forever hide:overlap laptop:emulator,without layout:lies loss:error mainloop:loop max:most,limit maximum:most,limit mixture:experts moe:experts multiple:edge,incomplete number:count
  nvfp4:mxf4nvf4 nvlink:peer once:first partial:edge,incomplete parity:phase pdl:dependent,launch phase:parity pipeline:ring precision:error,accumulator,narrow race:overwrite ragged:edge,incomplete
  reduce:add,partials,reduction regs:registers remainder:edge,incomplete reset:initialise roles:specialization safe:allowed slow:loses,pays small:few
  smallest:few smem:shared specialization:roles specialized:roles split:cut stale:old stall:wait start:begin store:write
  stuck:hang,deadlock sum:adds sync:barrier threadblock:cta tmem:tensor,memory transpose:major,layout transposed:major tune:choose two:pair
  worth:pays wrap:lap,flip wraps:lap,flip`
  .split(/\s+/).map(one => one.split(":")).map(([word, others]) => [stem(word), others.split(",")]));

/// Whether one letter more, less, other or exchanged makes one word of the other.
const alike = (one, other) => {
  if (Math.abs(one.length - other.length) > 1) return false;
  let from = 0, back = 0;
  while (from < one.length && one[from] === other[from]) ++from;
  while (back < Math.min(one.length, other.length) - from && one.at(-1 - back) === other.at(-1 - back)) ++back;
  const [a, b] = [one, other].map(word => word.slice(from, word.length - back));
  return Math.max(a.length, b.length) < 2 || (a.length === 2 && a === b[1] + b[0]);
};

const LEANS = /^(But|However|It|So|That|Then|There|These|They|This|Those|With|Without)\b/;  // a sentence that leans on the one before
const plain = text => text.normalize("NFKD").toLowerCase();
const isWord = piece => /^[\p{L}\d]/u.test(piece);
const TITLE = 0, TEXT = 1, PATH = 2;  // the fields of a section; the last one has the titles of its page and of its part
const terms = new Map();  // word: its number
const stems = [], places = [];  // by number: the word's stem; and section, field and place of each occurrence, one after the other
let items;

const number = word => {
  if (!terms.has(word)) {
    terms.set(word, terms.size);
    stems.push(stem(word));
    places.push([]);
  }
  return terms.get(word);
};

/// The words of a text: the number, the place and the sentence of each, and where sentences begin.
const read = (html, item, field) => {
  const found = {html, terms: [], starts: [], ends: [], sentences: [], begins: [], codes: []};
  let open = true, code = false, row = false, colon = false;
  for (const match of html.matchAll(PIECE)) {
    const [piece, closing, tag] = match;
    if (tag === "pre") code = !closing;
    if (tag === "div") row = !closing;
    if (/^[.?!;:\n]/.test(piece) || (tag && tag !== "code")) {
      open ||= tag ? !colon : piece === "\n" ? code : /[.?!]/.test(piece) && !(row && match.index < found.begins.at(-1) + 220);
      colon = piece === ":" || (colon && tag && !/^(pre|li|div)$/.test(tag));
      continue;
    }
    if (open && piece[1] !== "/") {
      found.begins.push(match.index);
      found.codes.push(code && !/^(<code>)?(tools|build)\//.test(html.slice(match.index)));  // commands have comments
      open = false;
    }
    if (!isWord(piece)) continue;
    colon = false;
    const word = plain(piece), last = found.ends.at(-1);
    if (html[last] === "-" && last + 1 === match.index) places[number(plain(html.slice(found.starts.at(-1), last)) + word)].push(item, field, found.terms.length);
    places[number(word)].push(item, field, found.terms.length);
    found.terms.push(number(word));
    found.starts.push(match.index);
    found.ends.push(match.index + piece.length);
    found.sentences.push(found.begins.length - 1);
  }
  return found;
};

/// How much of a page's kind, by its place in the site, explains what a word means. Nothing is left of a section that nobody looks for.
const explains = (location, title) =>
  (/^(CHANGELOG|CONTRIBUTING|SECURITY|(docs\/)?index|docs\/(questions|style|site|for-assistants|first-contribution))/.test(location) ? 0.45
    : /^docs\/(lab|museum|decisions|results|from-here|emulator\/compute)/.test(location) ? 0.7
    : /^docs\/(?!emulator|cheat|recap|part-|verification|measuring|commands|step-|glossary)/.test(location) ? 1.15
    : /^steps\/[01]/.test(location) ? 1.05 : /^(steps\/7|docs\/b)/.test(location) ? 0.9 : 1) *
  (/retired-words/.test(location) ? 0 : /^(Sources|Exercises|What you can do now|\w+ questions)$/.test(title) ? 0.4
    : /^(Predicted and measured|Measured|What the machine code shows|Barrier ledger|Opcodes of this course)$/.test(title) ? 0.85
    : /^The (problem|idea)$/.test(title) ? 1.1 : 1);

const setUp = index => {
  const root = index.items[0].location.replace("index.html", "").length;  // the page has made addresses of the places
  const pages = {}, heads = Object.fromEntries(index.items.filter(item => item.level === 1).map(item => [item.location, item.title]));
  items = index.items.map((item, id) => {
    const page = item.location.split("#")[0], path = [...(item.path || []).slice(1), heads[page]].join(" ");
    return {page, kind: explains(item.location.slice(root), item.title) * (index.items[id - 1]?.level === 1 ? 1.1 : 1), title: read(item.title, id, TITLE), text: read(item.text, id, TEXT), path: read(path, id, PATH)};
  });
  const common = new Set([...COMMON].map(word => terms.get(word))), names = text => new Set(text.terms.filter(term => !common.has(term))).size;
  const length = item => item.text.terms.length + 20, mean = list => list.reduce((all, one) => all + one, 0) / list.length;
  for (const item of items) pages[item.page] = (pages[item.page] || 0) + length(item);
  const usual = mean(items.map(length)), usualPage = mean(Object.values(pages));
  for (const item of items) {
    Object.assign(item, {size: length(item) / usual, pageSize: pages[item.page] / usualPage, titleWords: names(item.title), pathWords: names(item.path)});
  }
};

/// How much it says that a section has one of these words.
const rarity = found => {
  const sections = new Set();
  for (const term of found) for (let i = 0; i < places[term].length; i += 3) if (places[term][i + 1] !== PATH) sections.add(places[term][i]);
  return Math.log(1 + (items.length - sections.size + 0.5) / (sections.size + 4)) ** 0.8;
};

/// The words that are like one, with how well they fit.
const like = (wanted, weight) => {
  const found = new Map(), root = stem(wanted);
  for (const [term, at] of terms) {
    const fit = term === wanted ? 1 : stems[at] === root ? 0.9 : wanted.length > 2 && term.startsWith(wanted) ? 0.6 : 0;
    if (fit) found.set(at, weight * fit);
  }
  if (!found.size && wanted.length > 3) for (const [term, at] of terms) if (alike(term, wanted)) found.set(at, weight * 0.5);
  return found;
};

/// For each word of a query: how rare it is, and how well each word of the index fits it, by its number.
const fitting = query => {
  const words = [...new Set([...query.matchAll(PIECE)].map(([piece]) => plain(piece)).filter(isWord))];
  const asked = words.filter(word => !COMMON.has(word));
  return (asked.length ? asked : words).map(word => {
    const own = like(word, 1), all = [own, ...(ALSO.get(stem(word)) || []).map(other => like(other, 0.7))].filter(found => found.size);
    const rare = Math.max(0, ...(own.size ? [own] : all).map(found => rarity(found.keys()))), fits = new Map();
    for (const found of all) {
      const share = found === own ? 1 : Math.min(1, rarity(found.keys()) / rare);  // a synonym that is common says little
      found.forEach((fit, term) => fits.set(term, Math.max(fits.get(term) || 0, fit * share)));
    }
    return {rare, fits};
  }).filter(({fits}) => fits.size);
};

const search = query => {
  const words = fitting(query), onPage = {}, zeros = () => words.map(() => 0);
  const sum = value => words.reduce((all, {rare}, at) => all + rare * value(at), 0);
  const found = items.map((item, id) => ({id, item, sentences: [], at: [], times: [zeros(), zeros(), zeros()], passage: 0, early: 0, from: 0}));
  words.forEach(({fits: like}, word) => like.forEach((fit, term) => {
    const where = places[term];
    for (let i = 0; i < where.length; i += 3) {
      const field = where[i + 1], at = where[i + 2], {item, sentences, times, at: place} = found[where[i]];
      times[field][word] += fit;
      if (field !== TEXT) continue;
      const fits = sentences[item.text.sentences[at]] ||= zeros();
      place[at] = word;
      fits[word] = Math.max(fit, fits[word]);
    }
  }));
  for (const {item, times} of found) {
    const page = onPage[item.page] ||= zeros();
    words.forEach((_, at) => { page[at] += times[TEXT][at] + 2 * times[TITLE][at]; });
  }
  const all = sum(() => 1), once = times => Math.min(1, times), often = times => times / (times + 1.2);
  for (const one of found) {
    const {item, sentences, times: [title, text, path]} = one, near = [];
    // Words of the query that stand side by side, as in the name of an instruction.
    one.at.forEach((word, at) => {
      const last = one.at[at - 1], sentence = item.text.sentences[at];
      if (last !== undefined && last !== word && sentence === item.text.sentences[at - 1]) near[sentence] = Math.max(near[sentence] || 0, words[word].rare + words[last].rare);
    });
    // A sentence is also about what the titles name, and the following one goes on with it.
    sentences.forEach((fits, at) => {
      const next = sentences[at + 1];
      const about = sum(word => Math.max(fits[word], 0.6 * (next?.[word] || 0), 0.3 * once(title[word]), 0.3 * once(path[word])));
      const passage = (about + 0.4 * sum(word => fits[word]) + 0.3 * (near[at] || 0)) * (item.text.codes[at] ? 0.3 : 1), early = passage * (1 + 0.3 / (1 + at / 5));
      one.passage = Math.max(one.passage, passage);
      if (early <= one.early) return;
      one.early = early;  // answers come early
      const {begins, html} = item.text;
      if (begins[at] - begins[at - 1] < 160 && LEANS.test(html.slice(begins[at])) && !/<\/(p|li|div|pre)>/.test(html.slice(begins[at - 1], begins[at]))) --at;
      one.from = begins[at] < 100 || item.text.terms.length < 60 ? 0 : begins[at];
    });
    const covered = sum(at => once(Math.max(text[at], title[at], 0.9 * path[at]))) / all;
    // How much of the query is in a title, and how much of the title is in the query.
    const names = (times, size) => size && (sum(at => once(times[at])) / all) ** 0.5 * once(times.reduce((found, one) => found + once(one), 0) / size);
    const has = sum(at => often(text[at] / (0.5 + 0.7 * item.size) + 2.5 * title[at] + path[at]) + 0.45 * often(onPage[item.page][at] / item.pageSize));
    one.score = item.kind * covered ** 0.7 * ((1 + names(title, item.titleWords) + names(path, item.pathWords)) * has + 0.3 * one.passage);
  }
  const best = Math.max(...found.map(one => one.score));
  // Of one page, two are among the first six.
  const sorted = found.filter(one => one.score > 0 && one.score >= 0.3 * best).sort((a, b) => b.score - a.score), listed = {};
  const first = sorted.filter(({item}) => (listed[item.page] = (listed[item.page] || 0) + 1) <= 2).slice(0, 6);
  return [words, [...first, ...sorted.filter(one => !first.includes(one))].slice(0, 30)];
};

const marked = (text, words) => text.terms.flatMap((term, at) => words.some(({fits}) => fits.has(term))
  ? [{start: text.starts[at], end: text.ends[at], value: text.ends[at] - text.starts[at]}] : []);

const answer = data => {
  const [words, found] = search(data.input);
  const shown = found.map(({id, item, from}) => ({id, matches: [
    {id, field: "title", score: 0, value: {highlight: {ranges: marked(item.title, words)}}},
    {id, field: "text", score: 0, value: {highlight: {from, ranges: marked(item.text, words).filter(({start}) => start >= from)}}}]}));
  self.postMessage({type: 3, data: {items: shown, query: {input: data.input, values: []}, aggregations: [], pagination: {total: shown.length}}});
};

let asked;  // what the page asked last: a page asks at each letter
self.onmessage = ({data: {type, data}}) => {
  if (type === 0) {
    setUp(data);
    self.postMessage({type: 1});
  } else if (type === 2) {
    asked = data;
    setTimeout(() => asked === data && answer(data));
  }
};
