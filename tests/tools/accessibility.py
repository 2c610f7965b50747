"""axe-core, the accessibility checker, in a page. The Python package axe-playwright-python or axe-selenium-python brings it; nothing else of
them is used."""
import importlib.util
import json
import pathlib
import site

site.main()  # tests run without site-packages


def script():
    """The text of axe.min.js, or None where neither package is installed."""
    for package in ("axe_playwright_python", "axe_selenium_python"):
        found = importlib.util.find_spec(package)
        for folder in found.submodule_search_locations if found else ():
            for file in pathlib.Path(folder).rglob("axe.min.js"):
                return file.read_text(encoding="utf-8")
    return None


def findings(browser, axe):
    """What axe finds serious or critical in the page that the browser shows: "rule: the element"."""
    browser.value(f"(() => {{ {axe}; return 0; }})()")
    said = browser.value("axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(found.violations.filter("
                         "one => ['serious', 'critical'].includes(one.impact)).flatMap(one => one.nodes.map(node => `${one.id}: ${node.target.join(' ')} ${node.html.slice(0, 150)}"
                         " ${(node.failureSummary || '').slice(0, 250)}`))))")
    return json.loads(said)
