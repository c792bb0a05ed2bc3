"use strict";

// Uses the page as a reader does, and leaves what it found in the attribute data-probe of the body.
(async () => {
  const found = {errors: window.probeErrors};
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const rows = () => [...document.querySelectorAll("#tasks tbody tr")];
  const drawn = () => [...document.querySelectorAll(".chart")].map((chart) => [
    chart.id, chart.querySelectorAll("svg path[d], svg .mark-text text").length]);
  const settle = async () => { await wait(300); await Charts.draw(); };
  while (!document.body.dataset.readyMs) await wait(20);
  found.blank = [...Charts.drawn.keys()].filter((name) => Charts.isSeen(name) && Charts.waiting.has(name));
  await Charts.drawing;
  found.readyMs = Number(document.body.dataset.readyMs);
  found.charts = drawn();
  found.overflow = document.documentElement.scrollWidth - innerWidth;
  found.tasks = rows().length;
  const search = document.querySelector('input[type="search"]');
  search.value = "SCALE";
  search.dispatchEvent(new Event("input"));
  await settle();
  found.filtered = rows().map((row) => row.cells[1].textContent);
  found.bars = document.querySelectorAll("#chart-times .mark-rect path").length;
  search.value = "";
  search.dispatchEvent(new Event("input"));
  [...document.querySelectorAll("button")].find((b) => b.textContent === "Select none").click();
  await settle();
  found.none = [rows().filter((row) => row.ariaSelected === "true").length, document.querySelectorAll("details").length];
  rows()[0].click();
  await settle();
  found.one = [rows().filter((row) => row.ariaSelected === "true").length, document.querySelectorAll("details").length];
  document.querySelectorAll("#tasks th button")[1].click();
  found.byName = rows().map((row) => row.cells[1].textContent);
  const dark = Theme.now();
  const before = getComputedStyle(document.body).backgroundColor;
  document.getElementById("theme").click();
  await settle();
  found.theme = [dark !== Theme.now(), before !== getComputedStyle(document.body).backgroundColor];
  found.again = drawn();
  Charts.draw();
  dispatchEvent(new Event("beforeprint"));
  for (let turn = 0; turn < 1e5 && Charts.waiting.size; turn += 1) await null;
  found.unprinted = [...Charts.waiting];
  const points = Array.from({length: 3 * MOST_POINTS}, (_, at) => ({at, isSelected: at % 30 === 2}));
  const {values, title} = thinned(points, "program");
  found.thinned = [values.length, values.findIndex((v) => v.isSelected), title.title, values[values.length - 1].at];
  found.flat = [around([4, 4], 2), around([1, 4], 2)];
  return found;
})().catch((error) => ({errors: [String(error.stack)]})).then((found) => {
  document.body.dataset.probe = JSON.stringify(found);
});
