"use strict";

/** Draws charts into their places, and again when the theme, the width or the selection changes. */
const Charts = {
  drawn: new Map(),
  views: new Map(),

  /** A place that shows the chart of *spec*, a function that is called at each drawing. */
  place(name, spec, label) {
    const element = make("div", {class: "chart", id: `chart-${name}`, role: "img", "aria-label": label});
    Charts.drawn.set(name, {element, spec});
    return element;
  },

  /** Draw the charts with these names; without names, all.  Drawings of one chart take turns. */
  async draw(...names) {
    const chosen = (names.length ? names : [...Charts.drawn.keys()]).filter((name) => Charts.drawn.has(name));
    await Promise.all(chosen.map((name) => {
      const chart = Charts.drawn.get(name);
      chart.ready = (chart.ready ?? Promise.resolve()).then(() => Charts.drawOne(chart, name));
      return chart.ready;
    }));
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
      range: {category: Charts.palette()},
    };
  },

  /** Colours that tell selected tasks apart. */
  palette() {
    return [1, 2, 3, 4, 5, 6, 7, 8].map((number) => colour(`series-${number}`));
  },
};

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
