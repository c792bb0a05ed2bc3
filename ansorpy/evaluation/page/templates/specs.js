"use strict";

/** Specifications of the charts (Vega-Lite), from the facts and what the reader selected; null: nothing to draw. */

const ROW_PX = 24;
const MOST_ROWS = 16;
const MOST_NAMED = 64;
const MOST_POINTS = 2000;
const LEAST_PX = 3;

const byTime = (a, b) => b.calls * (b.best_s ?? 0) - a.calls * (a.best_s ?? 0);

/** The numbers at which a logarithmic axis has lines: powers of ten, and more where these are few. */
function decades(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)].map(Math.log10);
  const steps = high - low < 0.8 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : high - low < 2.2 ? [1, 2, 5] : [1];
  const found = [];
  for (let power = Math.floor(low) - 1; power <= Math.ceil(high); power += 1) {
    found.push(...steps.map((step) => step * 10 ** power));
  }
  return found;
}

/** The ends of an axis around *values*, with a *margin*, a factor: a larger one if all are the same. */
function around(values, margin) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const factor = low === high ? 1.6 : margin;
  return [low / factor, high * factor];
}

/** An expression of a label that leaves out the middle where it is longer than *most* characters. */
function shortened(most) {
  const [start, end] = [Math.floor(most * 0.4), Math.ceil(most * 0.6) - 1];
  return `length(datum.label) > ${most} ? slice(datum.label, 0, ${start}) + '…' + slice(datum.label, -${end}) : datum.label`;
}

/** Points to draw, those of selected tasks on top: all, or some evenly, and a title that says so. */
function thinned(points, noun) {
  const share = Math.min(1, MOST_POINTS / points.length);
  const values = points.filter((_, at) => Math.floor((at + 1) * share) > Math.floor(at * share))
    .sort((a, b) => a.isSelected - b.isSelected);
  return {values, title: share === 1 ? {} : {title: `${Format.number(values.length)} of ${Format.count(points.length, noun)}, evenly chosen`}};
}

/** One row per task: a wide bar for one number, a narrow bar on it for another, a tick for a third. */
function bullets(rows, {wide, narrow, tick, title, format, isNarrow}) {
  const y = {
    field: "label", type: "nominal", sort: null, title: null,
    axis: {labelExpr: shortened(isNarrow ? 20 : 32), labelLimit: 300, ticks: false, domain: false},
  };
  const x = (field) => ({field, type: "quantitative", title, axis: {tickCount: 5, ...(format ? {format} : {})}});
  const tooltip = [
    {field: "label", title: "task"},
    ...[wide, narrow, tick].filter(Boolean).map((one) => ({field: `${one.field}_text`, title: one.title})),
  ];
  const layers = [
    {mark: {type: "bar", height: 16, cornerRadiusEnd: 3, color: colour("before")},
      encoding: {x: x(wide.field)}},
    {mark: {type: "bar", height: 8, cornerRadiusEnd: 2},
      encoding: {x: x(narrow.field), color: {field: "colour", type: "nominal", scale: null}}},
  ];
  if (tick) {
    layers.push({mark: {type: "tick", thickness: 2, size: 18, color: colour("limit")},
      encoding: {x: x(tick.field)}});
  }
  const shown = rows.slice(0, MOST_ROWS);
  return shown.length === 0 ? null : {
    height: shown.length * ROW_PX, data: {values: shown},
    encoding: {y, tooltip}, layer: layers,
  };
}

const Specs = {
  peers(bench, isNarrow) {
    const ours = bench.engines.ansorpy?.median_ms ?? null;
    const values = Object.entries(bench.engines).map(([engine, timing]) => ({
      engine, ms: timing.median_ms, low: timing.bursts_ms[0], high: timing.bursts_ms[1],
      version: timing.version,
      label: `${Format.latency(timing.median_ms / 1e3)}`
        + (engine === "ansorpy" || !ours ? "" : `  ·  ${Format.times(timing.median_ms / ours)}`),
      colour: engine === "ansorpy" ? colour("accent") : colour("before-strong"),
    }));
    const y = {field: "engine", type: "nominal", sort: null, title: null,
      axis: {ticks: false, domain: false, labelFontSize: 13, ...(isNarrow ? {labelLimit: 100} : {})}};
    const x = {field: "ms", type: "quantitative", title: "median latency of a run, ms",
      axis: {tickCount: 5}, scale: {domain: [0, Math.max(...values.map((v) => v.high)) * (isNarrow ? 2.2 : 1.3)], nice: false}};
    const tooltip = [
      {field: "engine"}, {field: "version"}, {field: "ms", title: "median, ms", format: ".3f"},
      {field: "low", title: "fastest burst, ms", format: ".3f"},
      {field: "high", title: "slowest burst, ms", format: ".3f"},
    ];
    return {
      height: 40 * values.length, data: {values}, encoding: {y, tooltip},
      layer: [
        {mark: {type: "bar", height: 22, cornerRadiusEnd: 4},
          encoding: {x, color: {field: "colour", scale: null}}},
        {mark: {type: "rule", strokeWidth: 2, color: colour("text"), opacity: 0.55},
          encoding: {x: {...x, field: "low"}, x2: {field: "high"}}},
        {mark: {type: "text", align: "left", dx: 10, fontWeight: 600, color: colour("text")},
          encoding: {x: {...x, field: "high"}, text: {field: "label"}}},
      ],
    };
  },

  network(networks, over, isNarrow) {
    const values = networks.flatMap((network) => network.points.map((point) => ({
      network: network.name, x: over === "time" ? point.at_s : point.trials, ms: point.best_s * 1e3,
      trials: point.trials, at: Format.duration(point.at_s), text: Format.latency(point.best_s),
    })));
    const several = networks.length > 1;
    return {
      height: 260, data: {values},
      encoding: {
        x: {field: "x", type: "quantitative", axis: {grid: false, tickCount: 6},
          title: over === "time" ? "tuning time, s" : "trials"},
        y: {field: "ms", type: "quantitative", title: "sum of the kernels, ms", axis: {tickCount: 6},
          scale: {zero: false, domain: around(values.map((v) => v.ms), 1.05)}},
        ...(several ? {color: {field: "network", type: "nominal", title: null,
          legend: {orient: "top", labelLimit: 300, symbolType: "stroke", symbolOpacity: 1, symbolStrokeWidth: 2.5,
            columns: isNarrow ? 1 : 2}}} : {}),
        tooltip: [...(several ? [{field: "network"}] : []), {field: "text", title: "kernels"},
          {field: "trials"}, {field: "at", title: "after"}],
      },
      layer: [
        {mark: {type: "line", interpolate: "step-after", strokeWidth: 2.5,
          ...(several ? {} : {color: colour("accent")})}},
        {mark: {type: "point", size: 60, filled: true, opacity: 0.01}},
      ],
    };
  },

  curves(tasks, over) {
    const unit = Format.unit(Math.max(0, ...tasks.flatMap((t) => t.curve.map((p) => p.best_s))));
    const values = tasks.flatMap((task) => task.curve.map((point) => ({
      task: task.label, best: point.best_s * unit.per_s, x: over === "time" ? point.at_s : point.trials,
      at: Format.duration(point.at_s), trials: point.trials, text: Format.latency(point.best_s),
    })));
    return values.length === 0 ? null : {
      height: 260, data: {values},
      encoding: {
        x: {field: "x", type: "quantitative", axis: {grid: false, tickCount: 6},
          title: over === "time" ? "tuning time, s" : "trials of the task"},
        y: {field: "best", type: "quantitative", title: `best time of a call, ${unit.name} (logarithmic)`,
          scale: {type: "log", nice: false, domain: around(values.map((v) => v.best), 1.15)},
          axis: {values: decades(values.map((v) => v.best)), format: ",~r"}},
        color: {field: "task", type: "nominal", legend: null,
          scale: {domain: tasks.map((t) => t.label), range: tasks.map((t) => t.colour)}},
        tooltip: [{field: "task"}, {field: "text", title: "best"}, {field: "trials"},
          {field: "at", title: "after"}],
      },
      layer: [
        {mark: {type: "line", interpolate: "step-after", strokeWidth: 2}},
        {mark: {type: "point", size: 28, filled: true}},
      ],
    };
  },

  times(tasks, isNarrow) {
    const called = [...tasks].filter((t) => t.best_s !== null && t.calls).sort(byTime);
    const unit = Format.unit(Math.max(0, ...called.map((t) => t.calls * t.first_s)));
    const rows = called.map((task) => {
      const [first, best, least] = [task.first_s, task.best_s, task.limits.least_s]
        .map((s) => s * task.calls);
      return {
        label: task.label, colour: task.colour ?? colour("accent"),
        first: first * unit.per_s, best: best * unit.per_s, least: least * unit.per_s,
        first_text: Format.latency(first),
        best_text: Format.latency(best), least_text: Format.latency(least),
      };
    });
    return bullets(rows, {
      wide: {field: "first", title: "first program"}, narrow: {field: "best", title: "best program"},
      tick: {field: "least", title: "at least (roofline)"}, title: `all calls of a run, ${unit.name}`,
      isNarrow,
    });
  },

  budget(tasks, isNarrow) {
    const rows = [...tasks].sort((a, b) => b.planned - a.planned || b.got - a.got).map((task) => ({
      label: task.label, colour: task.colour ?? colour("accent"), planned: task.planned,
      got: task.got, planned_text: task.planned, got_text: task.got,
    }));
    return bullets(rows, {
      wide: {field: "planned", title: "planned"}, narrow: {field: "got", title: "measured"},
      title: "trials of this run", format: "d", isNarrow,
    });
  },

  roofline(tasks, machine, isNarrow) {
    const shown = tasks.filter((t) => t.best_s !== null && t.flops > 0 && t.bytes > 0);
    const values = shown.map((task) => ({
      task: task.label, intensity: task.flops / task.bytes, gflops: task.flops / task.best_s / 1e9,
      roof: task.limits.least_s ? task.flops / task.limits.least_s / 1e9 : null,
      share: task.share, colour: task.colour ?? colour("muted"), bound: task.limits.bound,
      best: Format.latency(task.best_s), least: Format.latency(task.limits.least_s),
      order: task.colour ? 1 : 0,
    }));
    if (!values.length) return null;
    const below = values.filter((v) => v.roof > v.gflops);
    const rates = values.map((v) => v.gflops);
    const peak = machine.peak_flops ? machine.peak_flops / 1e9 : Math.max(1, ...values.map((v) => v.roof ?? v.gflops));
    const range = [Math.min(peak, ...rates) / 2, Math.max(peak, ...rates) * 2];
    const x = {field: "intensity", type: "quantitative", scale: {type: "log", nice: false},
      title: "arithmetic intensity, FLOP per byte (logarithmic)",
      axis: {values: decades(values.map((v) => v.intensity)), format: "~g"}};
    const y = {field: "gflops", type: "quantitative", scale: {type: "log", nice: false, domain: range},
      title: "GFLOP/s (logarithmic)", axis: {values: decades(range), format: "~s"}};
    const tooltip = [{field: "task"}, {field: "best", title: "best"}, {field: "least", title: "at least"},
      {field: "bound", title: "bound by"}, {field: "gflops", title: "GFLOP/s", format: ".1f"},
      {field: "intensity", title: "FLOP/byte", format: ".2f"}];
    return {
      height: 320, data: {values},
      layer: [
        ...roofs(values, machine, isNarrow),
        ...(below.length ? [{data: {values: below},
          mark: {type: "rule", clip: true, opacity: 0.35, strokeDash: [2, 3], color: colour("text")},
          encoding: {x, y, y2: {field: "roof"}}}] : []),
        {mark: {type: "point", filled: true, opacity: 0.9, stroke: colour("card"), strokeWidth: 1},
          encoding: {x, y, tooltip, color: {field: "colour", scale: null}, order: {field: "order"},
            size: {field: "share", type: "quantitative", legend: null,
              scale: {range: [40, 500], domain: [0, 1]}}}},
      ],
    };
  },

  failures(failures) {
    return {
      height: 34 * failures.length, data: {values: failures},
      encoding: {
        y: {field: "kind", type: "nominal", sort: null, title: null,
          axis: {ticks: false, domain: false}},
        x: {field: "trials", type: "quantitative", title: "trials", axis: {format: "d", tickMinStep: 1}},
        tooltip: [{field: "kind"}, {field: "trials"}],
      },
      layer: [{mark: {type: "bar", height: 18, cornerRadiusEnd: 3, color: colour("bad")}}],
    };
  },

  predicted(programs) {
    if (!programs.length) return null;
    const {values: shown, title} = thinned(programs, "program");
    const times_s = shown.flatMap((p) => [p.predicted_s, p.measured_s]);
    const unit = Format.unit(Math.max(...times_s));
    const values = shown.map((p) => ({...p, predicted: p.predicted_s * unit.per_s, measured: p.measured_s * unit.per_s,
      predicted_text: Format.latency(p.predicted_s), measured_text: Format.latency(p.measured_s)}));
    const times = times_s.map((s) => s * unit.per_s);
    const ends = around(times, 1);
    const scale = {type: "log", nice: false, domain: around(times, 1.25)};
    const axis = {values: decades(ends), format: ",~r"};
    return {
      height: 280, ...title,
      layer: [
        {data: {values: ends.map((end) => ({end}))},
          mark: {type: "line", strokeDash: [4, 4], color: colour("text"), opacity: 0.4},
          encoding: {x: {field: "end", type: "quantitative", scale}, y: {field: "end", type: "quantitative", scale}}},
        {data: {values},
          mark: {type: "point", filled: true, size: 36, opacity: 0.75},
          encoding: {
            x: {field: "predicted", type: "quantitative", scale, axis, title: `predicted, ${unit.name} (logarithmic)`},
            y: {field: "measured", type: "quantitative", scale, axis, title: `measured, ${unit.name} (logarithmic)`},
            color: {field: "colour", scale: null},
            tooltip: [{field: "task"}, {field: "predicted_text", title: "predicted"}, {field: "measured_text", title: "measured"}],
          }},
      ],
    };
  },

  correlations(rounds) {
    const tooltip = [{field: "task"}, {field: "correlation", title: "rank correlation", format: ".2f"},
      {field: "programs", title: "programs"}];
    if (!rounds.length) return null;
    const {values, title} = thinned(rounds, "round");
    return {
      height: 280, ...title, data: {values},
      mark: {type: "point", filled: true, size: 45, opacity: 0.8},
      encoding: {
        x: {field: "at_s", type: "quantitative", title: "tuning time, s", axis: {grid: false, tickCount: 6}},
        y: {field: "correlation", type: "quantitative", title: "rank correlation of the round",
          scale: {domain: [-1, 1]}, axis: {tickCount: 5}},
        color: {field: "colour", scale: null}, tooltip,
      },
    };
  },

  arena(memory) {
    const values = memory.values.map((value, number) => ({
      ...value, shade: 0.55 + 0.2 * (number % 3), until: value.last + 1, size: Format.bytes(value.end - value.start),
      read: memory.calls[value.last], low: value.start / 2 ** 20, high: value.end / 2 ** 20,
    }));
    return {
      height: 300, data: {values},
      mark: {type: "rect", stroke: colour("card"), strokeWidth: 1, color: colour("accent")},
      encoding: {
        x: {field: "first", type: "quantitative", title: "calls, in order", scale: {nice: false},
          axis: {grid: false, tickMinStep: 1, format: "d"}},
        x2: {field: "until"},
        y: {field: "low", type: "quantitative", title: "address in the arena, MiB", axis: {grid: false, tickCount: 6}},
        y2: {field: "high"},
        opacity: {field: "shade", type: "quantitative", scale: null},
        tooltip: [{field: "name", title: "written by"}, {field: "read", title: "last read by"},
          {field: "size", title: "size"}],
      },
    };
  },

  timeline(calls, isNarrow) {
    const unit = Format.unit(calls.reduce((total, call) => total + call.inside_s, 0));
    const isNamed = calls.length <= MOST_NAMED && !isNarrow;
    const height = isNamed ? 15 * calls.length : Math.min(Math.max(8 * calls.length, 120), 480);
    let passed = 0;
    const values = calls.map((call, number) => {
      const start = passed;
      passed += call.inside_s * unit.per_s;
      return {
        number, name: call.name, start, end: passed, bound: call.bound,
        least: Math.min(start + call.least_s * unit.per_s, passed),
        time: Format.latency(call.inside_s), least_text: Format.latency(call.least_s),
        next: number + Math.max(0.85, LEAST_PX * calls.length / height),
      };
    });
    const names = JSON.stringify(calls.map((call) => call.name));
    const y = {field: "number", type: "quantitative", scale: {reverse: true, nice: false, domain: [0, calls.length]},
      title: isNamed ? null : "calls, in order",
      axis: isNamed
        ? {grid: false, ticks: false, domain: false, values: calls.map((_, n) => n), labelLimit: 260, labelFontSize: 11,
          labelOffset: 7, labelExpr: `${names}[datum.value]`}
        : {grid: false, format: "d", tickMinStep: 1}};
    const x = {field: "start", type: "quantitative", title: `time in the run, ${unit.name}`, scale: {nice: false},
      axis: {tickCount: 8}};
    const tooltip = [{field: "name", title: "call"}, {field: "time"},
      {field: "least_text", title: "at least (roofline)"}, {field: "bound", title: "bound by"}];
    return {
      height, data: {values},
      encoding: {x, y, y2: {field: "next"}, tooltip},
      layer: [
        {mark: {type: "rect", color: colour("before-strong")}, encoding: {x2: {field: "end"}}},
        {mark: {type: "rect", color: colour("accent")}, encoding: {x2: {field: "least"}}},
      ],
    };
  },
};

/** The lines of a machine's peak and bandwidths, over the range of the points. */
function roofs(values, machine, isNarrow) {
  if (machine.peak_flops === null) return [];
  const peak = machine.peak_flops / 1e9;
  const low = Math.min(...values.map((v) => v.intensity)) / 1.6;
  const high = Math.max(...values.map((v) => v.intensity), peak * 1e9 / machine.memory_bytes_per_s) * 2.5;
  const line = (name, bandwidth) => {
    const corner = Math.min(Math.max(machine.peak_flops / bandwidth, low), high);
    return [low, corner, high].map((intensity, at) => ({
      name, at, intensity, gflops: Math.min(bandwidth * intensity / 1e9, peak),
    }));
  };
  const lines = [
    ...line(`memory ${Format.number(machine.memory_bytes_per_s / 1e9)} GB/s`, machine.memory_bytes_per_s),
    ...line(`last-level cache ${Format.number(machine.cache_bytes_per_s / 1e9)} GB/s`, machine.cache_bytes_per_s),
  ];
  const x = {field: "intensity", type: "quantitative"};
  const y = {field: "gflops", type: "quantitative"};
  return [
    {data: {values: lines}, mark: {type: "line", clip: true, strokeWidth: 1.5, color: colour("limit")},
      encoding: {x, y, detail: {field: "name"}, strokeDash: {field: "name", title: null,
        legend: {orient: "bottom", symbolStrokeColor: colour("limit"), labelLimit: 300, columns: isNarrow ? 1 : 2}}}},
    {data: {values: [{intensity: high, gflops: peak, text: `peak ${Format.number(peak)} GFLOP/s`}]},
      mark: {type: "text", align: "right", dy: -8, color: colour("limit"), fontWeight: 600},
      encoding: {x, y, text: {field: "text"}}},
  ];
}
