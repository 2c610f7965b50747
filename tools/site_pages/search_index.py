"""What the search knows of the site's pages. The generator's index has no rows of tables, with which an excerpt could begin, and the
glossary as one section; here each of its terms is a result of its own."""
import json
import re

LEFT_OUT = re.compile(r'(?s)<(figure|svg|button|h[1-6])\b.*?</\1>|<pre class="mermaid">.*?</pre>|<p class="origin">.*?</p>'
                      r'|<p>(?:(?!</p>).)*>all steps</a>.*?</p>|<p><a href="kernel\.cuh\.html.*?</p>')  # the head of a chapter


def shown(text):
    """What a result shows of HTML: paragraphs, lists and code. A row of a table is a block."""
    text = re.sub(r"(?s)</t[dh]>\s*<t[dh][^>]*>", " · ", LEFT_OUT.sub(" ", text))
    text = re.sub(r"<(/?)tr\b[^>]*>", r"<\1div>", text)
    text = re.sub(r"<(/?)(p|li|ul|ol|pre|code|div)\b[^>]*>|<[^>]*>", lambda tag: f"<{tag[1]}{tag[2]}>" if tag[2] else "", text)
    text = text.replace("&quot;", '"')  # the page that shows it knows the others
    return "".join(part if part.startswith("<pre>") else re.sub(r"\s+", " ", part) for part in re.split(r"(?s)(<pre>.*?</pre>)", text)).strip()


def sections(page):
    """{anchor: HTML} of a page, in order. The terms of the glossary have anchors as headings have."""
    parts = re.split(r'(<(?:h[1-6]|tr) id="[^"]*">)', re.search(r"(?s)<article.*</article>", page)[0])
    return {re.search('id="(.*)"', opening)[1]: opening + text for opening, text in zip(parts[1::2], parts[2::2])}


def rewrite(site):
    """Gives each section in the index its text, and the glossary its terms."""
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    pages, items = {}, []
    for item in index["items"]:
        place, _, anchor = item["location"].partition("#")
        page = pages[place] = pages.get(place) or sections((site / place).read_text(encoding="utf-8"))
        items.append({**item, "text": shown(page[anchor or next(iter(page))])})
        if item["location"] == "docs/glossary.html":
            for anchor, row in page.items():
                if term := re.match(r"(?s)<tr[^>]*>\s*<td><strong>(.*?)</strong></td>\s*<td>(.*?)</td>", row):
                    items.append({**item, "location": f"{place}#{anchor}", "level": 2, "title": term[1], "text": f"<p>{shown(term[2])}</p>"})
    text = json.dumps({**index, "items": items}, ensure_ascii=False, separators=(",", ":"))
    (site / "search.json").write_text(text, encoding="utf-8")
    (site / "search.js").write_text(f"var __index = {text};\n", encoding="utf-8")
