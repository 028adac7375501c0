"use strict";
(function () {
  var table = document.getElementById("cases");
  var tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.appendChild(tip);

  function show(target, x, y) {
    tip.textContent = target.getAttribute("aria-label");
    tip.hidden = false;
    var box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 8) : y + 18) + "px";
  }
  function over(event) {
    return event.target.closest ? event.target.closest(".h") : null;
  }
  document.addEventListener("pointermove", function (event) {
    var target = over(event);
    if (target) show(target, event.clientX, event.clientY); else tip.hidden = true;
  });
  document.addEventListener("focusin", function (event) {
    var target = over(event);
    if (!target) { tip.hidden = true; return; }
    var box = target.getBoundingClientRect();
    show(target, box.left + box.width / 2, box.top + box.height / 2);
  });
  document.addEventListener("focusout", function () { tip.hidden = true; });
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") tip.hidden = true; });

  if (!table) return;
  var body = table.tBodies[0];
  var rows = Array.prototype.slice.call(body.rows);
  var text = document.getElementById("filter");
  var status = document.getElementById("status");
  var stack = document.getElementById("stack");
  var shown = document.getElementById("shown");
  var said = rows.map(function (row) { return row.textContent.toLowerCase(); });

  function filter() {
    var words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    var count = 0;
    rows.forEach(function (row, place) {
      var fits = (!status.value || row.dataset.s === status.value) && (!stack.value || row.cells[2].textContent === stack.value) &&
        words.every(function (word) { return said[place].indexOf(word) >= 0; });
      row.hidden = !fits;
      if (fits) count += 1;
    });
    shown.textContent = count + " of " + rows.length + " shown";
  }
  function options(select, values) {
    values.sort().forEach(function (value) {
      var option = document.createElement("option");
      option.value = value;
      option.textContent = value;
      select.appendChild(option);
    });
  }
  function distinct(values) {
    return values.filter(function (value, place) { return values.indexOf(value) === place; });
  }
  options(status, distinct(rows.map(function (row) { return row.dataset.s; })));
  options(stack, distinct(rows.map(function (row) { return row.cells[2].textContent; })));
  [text, status, stack].forEach(function (control) { control.addEventListener("input", filter); });
  document.querySelector(".tools").hidden = false;
  filter();

  function key(row, column) {
    var cell = row.cells[column];
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    return cell.textContent === "" ? null : cell.textContent;
  }
  Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(button);
    button.addEventListener("click", function () {
      var down = head.getAttribute("aria-sort") === "ascending";
      Array.prototype.forEach.call(table.tHead.rows[0].cells, function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      var order = rows.slice().sort(function (a, b) {
        var x = key(a, column), y = key(b, column);
        // What has no figure comes last, in both directions.
        if (x === null || y === null) return (x === null) - (y === null);
        var less = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
        return down ? -less : less;
      });
      order.forEach(function (row) { body.appendChild(row); });
    });
  });
})();
