"""Opens pages in Chromium by ChromeDriver and tells what it finds, as JSON.

browser.py CHROMEDRIVER CHROMIUM PAGE [PICTURES]

With PICTURES, screenshots at 400 and 1600 pixels in light and dark are left in that folder.
"""

import base64
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]


class Browser:
    def __init__(self, driver, chromium, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        self.session = None
        options = {"binary": chromium, "args": [*FLAGS, f"--user-data-dir={folder}"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}
        end = time.monotonic() + 120
        while self.session is None:
            try:
                self.session = self.ask("POST", "/session", wanted)["sessionId"]
            except OSError as error:
                if time.monotonic() > end or self.driver.poll() is not None:
                    raise SystemExit(f"ChromeDriver does not answer: {error}")
                time.sleep(0.2)

    def ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=180) as answer:
            return json.load(answer)["value"]

    def of(self, method, path, body=None):
        return self.ask(method, f"/session/{self.session}{path}", body)

    def cdp(self, command, **arguments):
        return self.of("POST", "/goog/cdp/execute", {"cmd": command, "params": arguments})

    def run(self, script):
        return self.of("POST", "/execute/sync", {"script": script, "args": []})

    def look(self, width, dark, height=900):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = "dark" if dark else "light"
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path, most=6000):
        height = min(most, self.run("return document.documentElement.scrollHeight"))
        width = self.run("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def key(self, key):
        keys = {"type": "key", "id": "keys", "actions": [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}
        self.of("POST", "/actions", {"actions": [keys]})

    def type(self, selector, text):
        """Clicks into a control and types, as a user does."""
        element = self.of("POST", "/element", {"using": "css selector", "value": selector})
        name = next(iter(element.values()))
        self.of("POST", f"/element/{name}/click", {})
        self.of("POST", f"/element/{name}/value", {"text": text})
        return name

    def point_at(self, selector):
        """Moves the pointer to the middle of the first such element."""
        element = self.of("POST", "/element", {"using": "css selector", "value": selector})
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        move = {"type": "pointerMove", "duration": 0, "origin": element, "x": 0, "y": 0}
        self.of("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def close(self):
        try:
            self.of("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(30)


# The smallest contrast of visible text with what is behind it, as WCAG defines it.
CONTRAST = """
const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const numbers = text => text.match(/[0-9.]+/g).map(Number);
const behind = e => { for (; e; e = e.parentElement) { const c = numbers(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0.5) return c; } return [255, 255, 255]; };
let worst = [99, ''];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n = walker.nextNode(), seen = 0; n && seen < 3000; n = walker.nextNode()) {
  const e = n.parentElement; if (!n.textContent.trim() || !e.getClientRects().length || ['script', 'style'].includes(e.localName)) continue;
  seen += 1; const style = getComputedStyle(e), svg = e.namespaceURI.endsWith('svg');
  const a = light(numbers(svg ? style.fill : style.color)), b = light(behind(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < worst[0]) worst = [ratio, n.textContent.trim().slice(0, 60)];
}
return worst;"""


def look_at(browser, page):
    found = {}
    browser.look(1600, False)
    started = time.monotonic()
    browser.of("POST", "/url", {"url": pathlib.Path(page).resolve().as_uri()})
    found["opened_seconds"] = round(time.monotonic() - started, 2)
    found["load_ms"] = browser.run("const e = performance.getEntriesByType('navigation')[0]; return e.loadEventEnd - e.startTime")
    found["pwned"] = browser.run("return window.pwned === true")
    found["scripts"] = browser.run("return document.scripts.length")
    found["elements"] = browser.run(
        "return Array.from(new Set(Array.from(document.querySelectorAll('*'), e => e.localName))).sort()")
    found["handlers"] = browser.run(
        "return Array.from(document.querySelectorAll('*')).filter(e => Array.from(e.attributes).some(a => a.name.startsWith('on'))).length")
    found["requests"] = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
    found["unlabelled"] = browser.run(
        "return Array.from(document.querySelectorAll('svg,[role=img],[tabindex]')).filter(e => !(e.getAttribute('aria-label') || '').trim()).length")
    found["unnamed_controls"] = browser.run(
        "return Array.from(document.querySelectorAll('input,select,button')).filter(e => !(e.labels && e.labels.length) && !e.textContent.trim()).length")
    # Narrow and wide, nothing sticks out.
    for width in (400, 1600):
        browser.look(width, False)
        found[f"overflow_{width}"] = browser.run("return document.documentElement.scrollWidth - innerWidth")
    for dark in (False, True):
        browser.look(1600, dark)
        found["contrast_dark" if dark else "contrast_light"] = browser.run(CONTRAST)
    browser.look(1600, False)
    # Text of pictures that is cut at their border.
    found["cut_off"] = browser.run(
        "return Array.from(document.querySelectorAll('svg text')).filter(t => { const b = t.getBBox(), v = t.ownerSVGElement.viewBox.baseVal;"
        " return b.width && (b.x < -2 || b.x + b.width > v.width + 3); }).map(t => t.textContent).slice(0, 5)")
    found["names"] = browser.cdp("Accessibility.getFullAXTree")["nodes"]
    found["names"] = sum(1 for node in found["names"] if node.get("role", {}).get("value") in ("image", "img", "button", "textbox", "combobox")
                         and not node.get("name", {}).get("value", "").strip() and not node.get("ignored"))
    found["rows"] = browser.run("return document.querySelectorAll('#cases tbody tr').length")
    if found["rows"]:
        visible = "return Array.from(document.querySelectorAll('#cases tbody tr')).filter(r => !r.hidden).length"
        typed = "const f = document.getElementById('filter'); f.value = {}; f.dispatchEvent(new Event('input')); "
        found["filtered_out"] = browser.run(typed.format("'no such words'") + visible)
        found["said"] = browser.run("return document.getElementById('shown').textContent")
        found["filtered_back"] = browser.run(typed.format("''") + visible)
        first = "return Number(document.querySelector('#cases tbody tr').cells[7].dataset.v)"
        click = "document.querySelectorAll('#cases thead th')[7].querySelector('button').click(); "
        found["sorted_up"] = browser.run(click + first)
        found["sorted_down"] = browser.run(click + first)
        found["sort_said"] = browser.run("return document.querySelectorAll('#cases thead th')[7].getAttribute('aria-sort')")
        # A user types, chooses and presses keys.
        stack = browser.run("return document.querySelector('#cases tbody tr').cells[2].textContent")
        filter = browser.type("#filter", stack[:12])
        found["typed"] = browser.run(visible)
        browser.of("POST", f"/element/{filter}/clear", {})
        choose = "const s = document.getElementById('stack'); s.value = arguments[0]; s.dispatchEvent(new Event('input')); " + visible
        found["chosen"] = browser.of("POST", "/execute/sync", {"script": choose, "args": [stack]})
        found["of_that_stack"] = browser.of("POST", "/execute/sync", {"script":
            "return Array.from(document.querySelectorAll('#cases tbody tr')).filter(r => r.cells[2].textContent === arguments[0]).length",
            "args": [stack]})
        browser.of("POST", "/execute/sync", {"script": choose, "args": [""]})
        browser.run("document.querySelectorAll('#cases thead th')[0].querySelector('button').focus()")
        browser.key("\ue007")
        found["sorted_by_key"] = browser.run("return document.querySelectorAll('#cases thead th')[0].getAttribute('aria-sort')")
    if browser.run("return document.querySelectorAll('svg .h').length"):
        browser.point_at("svg .h")
        found["hovered"] = browser.run("return document.querySelector('svg .h').getAttribute('aria-label')")
        found["tip_of_pointer"] = browser.run("const t = document.querySelector('.tip'); return t.hidden ? '' : t.textContent")
        # By the keyboard: the first reachable part of a picture says what it shows.
        browser.run("document.querySelector('svg .h').focus()")
        found["first_focus"] = browser.run("return document.activeElement.getAttribute('aria-label')")
        browser.key("\ue004")
        found["next_focus"] = browser.run("return document.activeElement.getAttribute('aria-label')")
        found["tip_of_focus"] = browser.run("const t = document.querySelector('.tip'); return t.hidden ? '' : t.textContent")
        browser.key("\ue00c")
        found["tip_after_escape"] = browser.run("return document.querySelector('.tip').hidden")
        browser.run("document.activeElement.blur()")
    return found


def main():
    driver, chromium, page, *rest = sys.argv[1:]
    folder = tempfile.mkdtemp()
    browser = None
    try:
        browser = Browser(driver, chromium, folder)
        found = look_at(browser, page)
        found["console"] = [entry["message"] for entry in browser.of("POST", "/se/log", {"type": "browser"})]
        for width in (400, 1600) if rest else ():
            for dark in (False, True):
                browser.look(width, dark)
                name = f"{pathlib.Path(page).stem}-{width}-{'dark' if dark else 'light'}.png"
                browser.picture(pathlib.Path(rest[0]) / name)
        print(json.dumps(found, indent=1))
    finally:
        if browser:
            browser.close()
        shutil.rmtree(folder, ignore_errors=True)


main()
