"use strict";

/** The parts of the report that do not change, and the order of all parts. */

const least_s = sum(facts.tasks.map((t) => t.calls * t.limits.least_s));
const missing = facts.tasks.filter((t) => t.calls > 0 && t.best_s === null);
const isOne = facts.tasks.length === 1;
const trials = sum(facts.tasks.map((t) => t.got + t.earlier));
const MOST_TILES = 7;

/** The other engines of a bench result, with how many times as long they take. */
function peers() {
  const ours = facts.bench?.engines.ansorpy;
  if (!ours) return [];
  return Object.entries(facts.bench.engines).filter(([name]) => name !== "ansorpy")
    .map(([name, timing]) => ({name, ms: timing.median_ms, ours: ours.median_ms, ratio: timing.median_ms / ours.median_ms}));
}

function header() {
  const {machine, run} = facts;
  return make("header", {},
    make("div", {}, make("h1", {}, ...breakable(facts.title)),
      make("p", {class: "muted"}, `${Format.count(facts.tasks.length, "task")}, ${Format.count(machine.threads, "thread")}, `
        + `${facts.bench?.machine.cpu ?? (machine.cpu || machine.target)} · run ${run.number}, ${run.started}`)),
    make("button", {type: "button", id: "theme", onclick: Theme.toggle, title: "Dark or light", "aria-label": "Dark or light"}, "◐"));
}

/** What the run achieved, in a sentence or two. */
function lead() {
  const parts = [];
  const bold = (text) => make("b", {}, text);
  if (missing.length) {
    parts.push(missing.length === facts.tasks.length ? "No task has a correct program yet."
      : `${Format.count(missing.length, "task")} of ${facts.tasks.length} ${missing.length === 1 ? "has" : "have"} no correct program yet. `);
  }
  for (const network of facts.networks) {
    const {best_s, first_s} = network;
    if (best_s === null) continue;
    const name = breakable(network.name || facts.title);
    parts.push(...(isOne ? [...name, " takes "] : ["The kernels of ", ...name, " take "]), bold(Format.latency(best_s)));
    parts.push(...(first_s && first_s > best_s ? [", ", bold(Format.times(first_s / best_s)),
      ` as fast as with the first ${isOne ? "program that was" : "programs that were"} measured. `] : [". "]));
  }
  peers().forEach(({name, ratio}, at, all) => {
    const isFaster = ratio >= 1;
    parts.push(at === 0 ? "A run is " : at < all.length - 1 ? ", " : " and ",
      bold(Format.times(isFaster ? ratio : 1 / ratio)), ` as ${isFaster ? "fast" : "slow"} as with ${name}`,
      at === all.length - 1 ? "." : "");
  });
  return make("p", {class: "lead"}, ...parts);
}

function tile(name, value, more, isMain = false) {
  return make("div", {class: isMain ? "tile main" : "tile"}, make("div", {class: "name"}, ...breakable(name)),
    make("div", {class: "value"}, value), make("div", {class: "more"}, more));
}

function tiles() {
  const {run} = facts;
  const shown = facts.networks.filter((n) => n.best_s !== null).slice(0, 4).map((network) => tile(
    facts.networks.length > 1 ? network.name : isOne ? "a call" : "all kernels", Format.latency(network.best_s),
    network.first_s ? `${Format.latency(network.first_s)} at first` : "", true));
  if (facts.networks.length === 1 && facts.networks[0].best_s && facts.networks[0].first_s) {
    const {first_s, best_s} = facts.networks[0];
    shown.push(tile("gained by tuning", Format.times(first_s / best_s), isOne ? "over the first program" : "over the first programs"));
  }
  if (!missing.length && least_s) {
    shown.push(tile("of the roofline", Format.percent(least_s / total_s), `at least ${Format.latency(least_s)}`));
  }
  for (const peer of peers()) {
    shown.push(tile(`vs ${peer.name}`, Format.times(peer.ratio),
      `${Format.number(peer.ours)} ms, not ${Format.number(peer.ms)} ms`, true));
  }
  const failed = sum(facts.tasks.map((t) => t.failed));
  const made = sum(facts.tasks.map((t) => t.got));
  const before = made === trials ? "" : `${(trials - made).toLocaleString("en")} in earlier runs, `;
  shown.push(tile("trials", trials.toLocaleString("en"), before + (failed ? `${failed} failed` : trials ? "none failed" : "")));
  shown.push(tile("tuning time", Format.duration(run.tuned_s), run.ended || "the run has not ended"));
  const rows = Math.ceil(shown.length / MOST_TILES);
  return make("div", {class: "tiles", style: `--columns: ${Math.ceil(shown.length / rows)}`}, ...shown);
}

function peersCard() {
  if (!facts.bench) return null;
  const {machine, threads} = facts.bench;
  return card("Against other engines", `Whole runs on ${machine.cpu}, ${Format.count(threads, "thread")}, timed in turns; `
    + "the line is the range over bursts.", Charts.place("peers", (isNarrow) => Specs.peers(facts.bench, isNarrow), "Latency of each engine"));
}

function timesCard() {
  const called = facts.tasks.filter((t) => t.calls && t.best_s !== null).length;
  const most = called > MOST_ROWS ? ` Only the ${MOST_ROWS} longest of ${called} tasks are drawn.` : "";
  return card("Where the time goes", `All calls of a task in one run, the longest first.${most}`,
    legend(["before", "first program"], ["accent", "best program"], ["limit", "at least (roofline)"]),
    Charts.place("times", (isNarrow) => Specs.times(page.tasks(), isNarrow), "Time of each task before and after"));
}

function rooflineCard() {
  const note = facts.machine.peak_flops === null ? "The rates of this machine were not measured, so there are no lines. "
    : "";
  return card("Roofline", note + "Each point is a task, larger with its share of the time; the dotted line leads to "
    + "what its arithmetic and its data allow, more than the peak for algorithms with fewer products. Points above a "
    + "bandwidth found their data in a cache.",
    Charts.place("roofline", (isNarrow) => Specs.roofline(page.tasks(), facts.machine, isNarrow), "Arithmetic rate over intensity"));
}

function budgetCard() {
  const {budget, seconds} = facts.run;
  const limits = [
    budget.trials === null ? null : Format.count(budget.trials, "trial"),
    budget.trials_per_task === null ? null : `${Format.count(budget.trials_per_task, "trial")} per task`,
    budget.time_limit_s === null ? null : Format.duration(budget.time_limit_s),
  ].filter(Boolean).join(", ");
  const got = sum(facts.tasks.map((t) => t.got));
  const said = `The run was allowed ${limits || "any time"} and made ${Format.count(got, "trial")}${seconds === null ? "" : ` in ${Format.duration(seconds)}`}`
    + `${facts.run.ended ? `; it ended because ${facts.run.ended}` : ""}. `
    + "Planned is each task's share of the time that was expected at the start."
    + (facts.tasks.length > MOST_ROWS ? ` Only the ${MOST_ROWS} tasks with the most planned trials are drawn.` : "");
  return card("Budget", said, legend(["before", "planned"], ["accent", "measured"]),
    Charts.place("budget", (isNarrow) => Specs.budget(page.tasks(), isNarrow), "Trials planned and measured"));
}

/** The ranked programs and rounds of the tasks that pass the filter. */
function ranked() {
  const tasks = new Map(page.tasks().map((task) => [task.number, task]));
  const rounds = facts.rounds.filter((round) => tasks.has(round.task)).map((round) => ({
    ...round, label: tasks.get(round.task).label, colour: tasks.get(round.task).colour ?? colour("muted"),
    isSelected: Boolean(tasks.get(round.task).colour),
  }));
  return {
    programs: rounds.flatMap((round) => round.programs.map((program) => ({
      task: round.label, colour: round.colour, isSelected: round.isSelected, predicted_s: program.predicted_s, measured_s: program.measured_s,
    }))),
    rounds: rounds.filter((round) => round.correlation !== null).map((round) => ({
      task: round.label, colour: round.colour, isSelected: round.isSelected, at_s: round.at_s, correlation: round.correlation,
      programs: round.programs.length,
    })),
  };
}

function rankingCard() {
  if (!facts.rounds.length) return null;
  const known = facts.rounds.map((r) => r.correlation).filter((c) => c !== null).sort((a, b) => a - b);
  const median = known.length ? known[known.length >> 1] : null;
  const said = "What the cost model predicted for a program before it was measured. Only the order matters to the search: "
    + "a rank correlation of 1 is a perfect order, 0 is chance"
    + `${median === null ? "." : `; in the median round it was ${median.toFixed(2)}.`}`;
  return card("How well the cost model ranked", said, make("div", {class: "pair"},
    make("div", {}, make("h3", {}, "Predicted and measured times"), Charts.place("predicted", () => Specs.predicted(ranked().programs), "Predicted and measured times")),
    make("div", {}, make("h3", {}, "Each round with three programs or more"), Charts.place("correlations", () => Specs.correlations(ranked().rounds), "Rank correlation of each round"))));
}

function memoryCard() {
  const {memory} = facts;
  if (!memory) return null;
  const parts = [["arena", memory.arena_bytes], ["constants", memory.constant_bytes], ["workspace", memory.workspace_bytes],
    ["inputs and outputs", memory.port_bytes]].map(([name, size]) => `${name} ${Format.bytes(size ?? 0)}`);
  const said = `A run needs ${Format.bytes(memory.peak_bytes ?? 0)}: ${parts.join(", ")}. Each rectangle is an intermediate value: `
    + "its bytes in the arena, from the call that writes it to the last one that reads it.";
  return card("Memory plan", said, memory.values.length
    ? Charts.place("arena", () => Specs.arena(memory), "Bytes of the arena over the calls")
    : make("p", {class: "muted"}, "No value is passed between calls."));
}

function timelineCard() {
  const calls = facts.bench?.calls ?? [];
  if (!calls.length) return null;
  const all = sum(calls.map((c) => c.inside_s));
  return card("Timeline of one run", `${Format.count(calls.length, "call")}, one after another, ${Format.latency(all)} in all; `
    + "the coloured part is the least that the roofline allows.",
    legend(["before-strong", "time"], ["accent", "at least (roofline)"]),
    Charts.place("timeline", (isNarrow) => Specs.timeline(calls, isNarrow), "The calls of a run over its time"));
}

function accuracyCard() {
  const errors = facts.tasks.filter((t) => t.program && t.program.max_error !== null).map((t) => [t.program.max_error, t.label]);
  const [worst, where] = errors.length ? errors.reduce((a, b) => (b[0] > a[0] ? b : a)) : [null, ""];
  const said = !worst ? "" : `Of the chosen programs, that of ${where} differs most from its reference: `
    + `by ${worst.toExponential(1)} of the largest value. `;
  const {verified} = facts;
  if (!verified) return card("Accuracy", null, make("p", {class: "note"}, said || "No difference from the references was recorded."));
  const rows = verified.outputs.map((output) => make("tr", {}, make("td", {class: "text wrap"}, output.name),
    make("td", {}, output.error === null ? "–" : output.error.toExponential(1)),
    make("td", {}, output.tolerance.toExponential(0)), make("td", {class: "text"}, output.ok ? "ok" : "differs")));
  const heading = ["output", "error", "allowed", "result"].map((name, at) => make("th", {class: at % 3 ? "" : "text"}, name));
  return card("Accuracy", `${said}The outputs of the network were compared with those of ${verified.against}; `
    + "an error is the largest difference, relative to the largest value.",
    make("div", {class: "scroll"}, make("table", {}, make("thead", {}, make("tr", {}, ...heading)), make("tbody", {}, ...rows))));
}

function machineCard() {
  const {machine, run, bench} = facts;
  const rate = (value, unit) => (value === null ? null : `${Format.number(value / 1e9)} ${unit}`);
  const entries = [
    ["processor", bench ? bench.machine.cpu : machine.cpu], ["target", `${machine.target}, ${machine.triple}, ${machine.cpu}`],
    ["cores, threads", `${machine.cores}, ${machine.threads}`],
    ["caches", machine.caches_bytes.map(Format.bytes).join(", ")],
    ["peak, float32", rate(machine.peak_flops, "GFLOP/s")],
    ["memory", rate(machine.memory_bytes_per_s, "GB/s")], ["precision", run.precision],
    ["seed", String(run.seed)],
    ["versions", Object.entries(run.versions).map(([name, version]) => `${name} ${version}`).join(", ")],
  ].filter(([, value]) => value);
  return card("Machine and versions", null, make("dl", {}, ...entries.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])));
}

/** How to add what this report lacks. */
function missingCard() {
  const lacks = [
    facts.bench ? null : ["Other engines", "ansorpy bench NET.onnx --against onnxruntime -o bench.json, then report --bench bench.json"],
    facts.bench?.calls.length ? null : ["Timeline of a run", "the same with bench --profile"],
    facts.verified ? null : ["Accuracy of the outputs", "ansorpy verify NET.onnx --json > verify.json, then report --verify verify.json"],
    facts.memory ? null : ["Memory plan", "ansorpy report NET.onnx --html FILE"],
  ].filter(Boolean);
  if (!lacks.length) return null;
  return card("Not in this report", null, make("dl", {}, ...lacks.flatMap(([name, how]) => [make("dt", {}, name), make("dd", {}, how)])));
}

const pair = (...cards) => make("section", {class: "pair"}, ...cards);

document.getElementById("report").append(...[
  header(), lead(), tiles(), peersCard(), Tasks.part(), Progress.part(), pair(timesCard(), budgetCard()), pair(rooflineCard(), make("div", {class: "stack"}, Failures.part(), accuracyCard())),
  rankingCard(), timelineCard(), memoryCard(), Programs.part(),
  machineCard(), missingCard(),
].filter(Boolean));
page.update().then(() => { document.body.dataset.readyMs ??= String(Math.round(performance.now())); });
