"use strict";

/** Numbers with units, and elements of the page. */
const Format = {
  /** Three significant digits, without exponents: 0.123, 12.3, 1,234. */
  number(value) {
    if (Number.isInteger(value)) return value.toLocaleString("en");
    const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
    return value.toLocaleString("en", {
      minimumFractionDigits: Math.min(digits, 6), maximumFractionDigits: Math.min(digits, 6),
    });
  },

  /** A latency in the unit that suits it. */
  latency(seconds) {
    if (seconds === null) return "–";
    if (seconds === 0) return "0 µs";
    if (seconds < 1e-3) return `${Format.number(seconds * 1e6)} µs`;
    return seconds < 1 ? `${Format.number(seconds * 1e3)} ms` : `${Format.number(seconds)} s`;
  },

  /** A duration that a person waits: 45.2 s, 6.1 min, 1.5 h. */
  duration(seconds) {
    if (seconds === null) return "–";
    const [size, unit] = seconds < 60 ? [1, "s"] : seconds < 3600 ? [60, "min"] : [3600, "h"];
    return `${Number((seconds / size).toFixed(1)).toLocaleString("en")} ${unit}`;
  },

  bytes(size) {
    const power = Math.min(Math.max(Math.floor(Math.log2(Math.max(size, 1)) / 10), 0), 3);
    return `${Format.number(size / 1024 ** power)} ${["B", "KiB", "MiB", "GiB"][power]}`;
  },

  percent(share) {
    if (share > 0 && share < 0.01) return "< 1 %";
    return `${Math.round(share * 100)} %`;
  },

  times(ratio) {
    return `${ratio < 10 ? ratio.toFixed(2) : Format.number(ratio)}×`;
  },

  /** The unit of an axis for latencies up to this many seconds. */
  unit(most_s) {
    return most_s < 2e-3 ? {name: "µs", per_s: 1e6} : {name: "ms", per_s: 1e3};
  },

  count(number, noun, plural = `${noun}s`) {
    return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
  },
};

/** An element with attributes and children; texts become text nodes, never HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

/** A long name that may be broken after each underscore. */
function breakable(name) {
  return name.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);
}

/** The value of a custom property of the style sheet: a colour of the current theme. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
