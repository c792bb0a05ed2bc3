"use strict";

/**
 * Draws charts into their places, and again when the theme, the width or the selection changes: one
 * after the other, those that the reader sees first, so that the page answers meanwhile.
 */
const Charts = {
  drawn: new Map(),
  views: new Map(),
  waiting: new Set(),
  drawing: null,

  /** A place that shows the chart of *spec*, a function that is called at each drawing. */
  place(name, spec, label) {
    const element = make("div", {class: "chart", id: `chart-${name}`, role: "img", "aria-label": label});
    Charts.drawn.set(name, {element, spec});
    return element;
  },

  /** Draw the charts with these names; without names, all.  Returns when no chart is left to draw. */
  draw(...names) {
    for (const name of names.length ? names : Charts.drawn.keys()) Charts.waiting.add(name);
    Charts.drawing ??= Charts.drawWaiting().finally(() => { Charts.drawing = null; });
    return Charts.drawing;
  },

  async drawWaiting(pause = () => new Promise((resume) => setTimeout(resume))) {
    await null;  // all that the caller adds is known then
    while (Charts.waiting.size) {
      const waiting = [...Charts.drawn.keys()].filter((name) => Charts.waiting.has(name));
      const seen = waiting.find(Charts.isSeen);
      if (!seen) document.body.dataset.readyMs ??= String(Math.round(performance.now()));
      const name = seen ?? waiting[0] ?? [...Charts.waiting][0];
      Charts.waiting.delete(name);
      const chart = Charts.drawn.get(name);
      if (!chart) continue;
      chart.ready = (chart.ready ?? Promise.resolve()).then(() => Charts.drawOne(chart, name)).catch(reportError);
      await chart.ready;
      await pause();
    }
  },

  isSeen(name) {
    const {top, bottom} = Charts.drawn.get(name).element.getBoundingClientRect();
    return bottom >= 0 && top <= innerHeight;
  },

  async drawOne({element, spec}, name) {
    const isNarrow = element.clientWidth < 480;
    const chart = spec(isNarrow);
    Charts.views.get(name)?.finalize();
    Charts.views.delete(name);
    if (chart === null) {
      element.replaceChildren(make("p", {class: "muted"}, "There is nothing to draw for these tasks."));
      return;
    }
    const made = {
      width: "container", background: null, autosize: {type: "fit-x", contains: "padding"}, ...chart,
    };
    Charts.views.set(name, await vegaEmbed(element, made, {
      mode: "vega-lite", actions: false, renderer: "svg", config: Charts.config(isNarrow), tooltip: {theme: Theme.now()},
    }));
  },

  config(isNarrow) {
    const text = {labelColor: colour("muted-text"), titleColor: colour("muted-text")};
    const font = {labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400};
    return {
      font: getComputedStyle(document.body).fontFamily,
      view: {stroke: null},
      axis: {
        ...text, ...font, gridColor: colour("line"), domainColor: colour("line"),
        tickColor: colour("line"), labelPadding: 6, titlePadding: 10,
        ...(isNarrow ? {labelFontSize: 11} : {}),
      },
      axisX: isNarrow ? {titleAnchor: "end"} : {},
      legend: {...text, ...font},
      title: {anchor: "start", fontSize: 12, fontWeight: 400, color: colour("muted-text"), offset: 8},
      range: {category: Charts.palette()},
    };
  },

  /** Colours that tell selected tasks apart. */
  palette() {
    return [1, 2, 3, 4, 5, 6, 7, 8].map((number) => colour(`series-${number}`));
  },
};

/** Paper shows all charts, so they are drawn without a pause: the browser waits for no timer. */
addEventListener("beforeprint", () => Charts.drawWaiting(() => null));

/** Dark or light: as the system, until the reader chooses. */
const Theme = {
  now() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  },

  toggle() {
    document.documentElement.dataset.theme = Theme.now() === "dark" ? "light" : "dark";
    page.update();
  },
};
