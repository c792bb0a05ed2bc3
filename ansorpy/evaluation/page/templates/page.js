"use strict";

/** The report: what it says, what the reader selected, and the parts of the page. */
const facts = JSON.parse(document.getElementById("facts").textContent);

const SELECTED_AT_FIRST = 5;
const COLUMNS = [
  {name: "#", of: (t) => t.number, text: (t) => t.number, isMinor: true},
  {name: "task", of: (t) => t.label, text: (t) => t.label, isText: true},
  {name: "calls", of: (t) => t.calls, text: (t) => Format.number(t.calls), isMinor: true},
  {name: "share", of: (t) => t.share, text: (t) => Format.percent(t.share), hasBar: true},
  {name: "first", of: (t) => t.first_s, text: (t) => Format.latency(t.first_s), isMinor: true},
  {name: "best", of: (t) => t.best_s, text: (t) => Format.latency(t.best_s)},
  {name: "faster", of: (t) => t.faster, text: (t) => (t.faster ? Format.times(t.faster) : "–"), isMinor: true},
  {name: "of roofline", of: (t) => t.reached, text: (t) => (t.reached ? Format.percent(t.reached) : "–")},
  {name: "GFLOP/s", of: (t) => t.gflops, text: (t) => (t.gflops ? Format.number(t.gflops) : "–"), isMinor: true},
  {name: "planned", of: (t) => t.planned, text: (t) => t.planned, isMinor: true},
  {name: "trials", of: (t) => t.got, text: (t) => t.got, isMinor: true},
  {name: "earlier", of: (t) => t.earlier, text: (t) => t.earlier || "", isMinor: true},
  {name: "failed", of: (t) => t.failed, text: (t) => t.failed || "", isMinor: true},
];

if (!facts.tasks.some((task) => task.earlier)) COLUMNS.splice(COLUMNS.findIndex((c) => c.name === "earlier"), 1);

const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);

const total_s = sum(facts.tasks.map((t) => t.calls * (t.best_s ?? 0)));
facts.tasks.forEach((task, number) => Object.assign(task, {
  number,
  share: total_s ? task.calls * (task.best_s ?? 0) / total_s : 0,
  faster: task.best_s && task.first_s ? task.first_s / task.best_s : null,
  reached: task.best_s && task.limits.least_s ? task.limits.least_s / task.best_s : null,
  gflops: task.best_s && task.flops ? task.flops / task.best_s / 1e9 : null,
  failed: sum(task.failures.map((f) => f.trials)),
}));

const most_share = Math.max(...facts.tasks.map((t) => t.share)) || 1;

const page = {
  over: "time",
  filter: "",
  sorted: {name: "share", isDown: true},
  selected: new Set([...facts.tasks].sort((a, b) => b.share - a.share)
    .slice(0, SELECTED_AT_FIRST).map((t) => t.number)),

  /** The tasks that pass the filter; the selected ones have a colour. */
  tasks() {
    const words = page.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const palette = Charts.palette();
    const order = [...page.selected];
    return facts.tasks
      .filter((task) => words.every((word) => task.label.toLowerCase().includes(word)))
      .map((task) => {
        const place = order.indexOf(task.number);
        return {...task, colour: place < 0 ? null : palette[place % palette.length]};
      });
  },

  chosen() {
    return page.tasks().filter((task) => task.colour).sort((a, b) => b.share - a.share);
  },

  /** Show everything again. */
  update(...charts) {
    for (const part of [Tasks, Progress, Programs, Failures]) part.update();
    return Charts.draw(...charts);
  },

  /** Show everything again that depends on the filter and the selection. */
  refresh() {
    return page.update("curves", "times", "roofline", "budget", "predicted", "correlations");
  },

  select(number) {
    if (!page.selected.delete(number)) page.selected.add(number);
    page.refresh();
  },
};

const card = (title, note, ...children) => make("section", {class: "card"},
  make("h2", {}, title), note ? make("p", {class: "note"}, note) : null, ...children);

/** Buttons of which one is pressed. */
function choice(names, pressed, choose) {
  const buttons = names.map((name) => make("button", {
    type: "button", "aria-pressed": String(name === pressed),
    onclick: () => {
      buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.textContent === name)));
      choose(name);
    },
  }, name));
  return make("span", {class: "choice"}, ...buttons);
}

const swatch = (colourName) => make("span", {class: "dot", style: `--dot: var(--${colourName})`});
const legend = (...entries) => make("p", {class: "chips muted"},
  ...entries.map(([name, text]) => make("span", {class: "key"}, swatch(name), text)));

/** The table of tasks: filter, order and selection. */
const Tasks = {
  body: make("tbody"),
  head: make("tr"),
  said: make("span", {class: "muted"}),

  part() {
    for (const column of COLUMNS) {
      Tasks.head.append(make("th", {class: Tasks.kind(column), scope: "col"},
        make("button", {type: "button", onclick: () => Tasks.sort(column)}, column.name)));
    }
    const search = make("input", {
      type: "search", placeholder: "Filter tasks, e.g. conv3x3", "aria-label": "Filter tasks",
      oninput: (event) => { page.filter = event.target.value; page.refresh(); },
    });
    const none = make("button", {type: "button", onclick: () => Tasks.choose([])}, "Select none");
    const all = make("button", {type: "button", onclick: () => Tasks.choose(page.tasks())}, "Select all");
    return card("Tasks", "Click tasks to select them; the charts below show the selected tasks in colour. "
      + "“Share” is a task's part of the whole time, “first” the first correct program that was measured, “of roofline” how "
      + "much of the best possible speed was reached.",
      make("div", {class: "bar"}, search, all, none, make("span", {class: "space"}), Tasks.said),
      make("div", {class: "scroll tall"}, make("table", {id: "tasks"}, make("thead", {}, Tasks.head), Tasks.body)));
  },

  kind(column) {
    return [column.isText && "text", column.hasBar && "share", column.isMinor && "minor"].filter(Boolean).join(" ");
  },

  choose(tasks) {
    page.selected = new Set(tasks.map((t) => t.number));
    page.refresh();
  },

  sort(column) {
    const isSame = page.sorted.name === column.name;
    page.sorted = {name: column.name, isDown: isSame ? !page.sorted.isDown : !column.isText};
    Tasks.update();
  },

  update() {
    const {name, isDown} = page.sorted;
    const column = COLUMNS.find((c) => c.name === name);
    const key = (task) => column.of(task) ?? -Infinity;
    const rows = page.tasks().sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (isDown ? -1 : 1) || a.number - b.number;
    });
    [...Tasks.head.children].forEach((cell, at) => {
      if (COLUMNS[at].name === name) cell.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    Tasks.body.replaceChildren(...rows.map(Tasks.row));
    Tasks.said.textContent = `${rows.length} of ${Format.count(facts.tasks.length, "task")}, ${page.chosen().length} selected`;
  },

  row(task) {
    const toggle = () => page.select(task.number);
    return make("tr", {
      class: "task", tabindex: "0", "aria-selected": String(Boolean(task.colour)), onclick: toggle,
      onkeydown: (event) => { if (event.key === "Enter") toggle(); },
      style: `--dot: ${task.colour ?? "transparent"}`,
    }, ...COLUMNS.map((column) => make("td", {class: Tasks.kind(column)},
      column.isText ? make("span", {class: "dot"}) : null,
      column.hasBar ? make("i", {style: `width: calc(${task.share / most_share} * (100% - 20px))`}) : null,
      ...(column.isText ? breakable(task.label) : [String(column.text(task))]))));
  },
};

/** Best times over the search, of networks and of selected tasks. */
const Progress = {
  chips: make("p", {class: "chips"}),

  part() {
    const over = choice(["over time", "over trials"], "over time", (name) => {
      page.over = name === "over time" ? "time" : "trials";
      Charts.draw("network", "curves");
    });
    const known = facts.networks.filter((n) => n.points.length);
    const whole = facts.tasks.length === 1 ? null : known.length
      ? Charts.place("network", (isNarrow) => Specs.network(known, page.over, isNarrow), "Latency of the whole network over the search")
      : make("p", {class: "muted"}, "Some task has no correct program yet, so the whole cannot run.");
    const curves = Charts.place("curves", () => Specs.curves(page.chosen().filter((t) => t.curve.length), page.over),
      "Best time of selected tasks over the search");
    return make("section", {class: "card"},
      make("div", {class: "bar"}, make("h2", {}, "How the search went"), make("span", {class: "space"}), over),
      facts.tasks.length === 1 ? curves : make("div", {class: "pair"},
        make("div", {}, make("h3", {}, "The whole: sum of all kernels"), whole),
        make("div", {}, make("h3", {}, "Selected tasks"), curves, Progress.chips)));
  },

  update() {
    const shown = page.chosen();
    Progress.chips.replaceChildren(...(shown.length ? shown.map((task) => make("span", {class: "key"},
      make("span", {class: "dot", style: `--dot: ${task.colour}`}), task.label))
      : [make("span", {class: "muted"}, "No task is selected: click some in the table.")]));
  },
};

/** Failed trials by cause, of the tasks that pass the filter. */
const Failures = {
  body: make("div"),

  part() {
    return card("Failed trials", null, Failures.body);
  },

  update() {
    const tasks = page.tasks();
    const trials = sum(tasks.map((t) => t.got + t.earlier));
    const slow = sum(tasks.map((t) => t.slow));
    const found = Failures.all(tasks);
    const failed = sum(found.map((f) => f.trials));
    const stopped = slow ? ` ${Format.count(slow, "trial")} ran correctly but ${slow === 1 ? "was" : "were"} stopped early because slower than the best.` : "";
    const said = failed ? `${failed} of ${Format.count(trials, "trial")} failed (${Format.percent(failed / trials)}).`
      : !trials ? "No trial was made." : `All ${Format.count(trials, "trial")} gave correct programs.`;
    Failures.body.replaceChildren(make("p", {class: "note"}, said + stopped));
    Charts.views.get("failures")?.finalize();
    Charts.views.delete("failures");
    Charts.drawn.delete("failures");
    if (failed) {
      const rows = found.map((f) => make("tr", {}, make("td", {class: "text"}, f.kind), make("td", {}, f.trials),
        make("td", {class: "text wrap"}, f.reason || "–")));
      Failures.body.append(Charts.place("failures", () => Specs.failures(found), "Failed trials by cause"),
        make("div", {class: "scroll"}, make("table", {}, make("thead", {}, make("tr", {}, make("th", {class: "text"}, "cause"),
          make("th", {}, "trials"), make("th", {class: "text"}, "first reason"))), make("tbody", {}, ...rows))));
      Charts.draw("failures");
    }
  },

  all(tasks) {
    const found = new Map();
    for (const task of tasks) {
      for (const {kind, trials, reason} of task.failures) {
        const known = found.get(kind) ?? {kind: kind.replaceAll("_", " "), trials: 0, reason: ""};
        known.trials += trials;
        if (!known.reason && reason) known.reason = `${task.label}: ${reason.split("\n")[0]}`;
        found.set(kind, known);
      }
    }
    return [...found.values()].sort((a, b) => b.trials - a.trials);
  },
};

/** The chosen programs of the selected tasks. */
const Programs = {
  body: make("div"),

  part() {
    return card("Chosen programs", "The loops that run, and the steps that made them from the definition, in order. Selected tasks only.",
      Programs.body);
  },

  update() {
    const open = new Set([...Programs.body.querySelectorAll("details[open]")].map((d) => d.dataset.task));
    const shown = page.chosen().filter((task) => task.program);
    Programs.body.replaceChildren(...(shown.length ? shown.map((task) => Programs.one(task, open.has(task.label)))
      : [make("p", {class: "muted"}, "No task with a program is selected.")]));
  },

  one(task, isOpen) {
    const {algorithm, steps, nest} = task.program;
    const way = algorithm && algorithm !== "direct" ? `, by ${algorithm}` : "";
    return make("details", {"data-task": task.label, open: isOpen},
      make("summary", {}, make("span", {class: "dot", style: `--dot: ${task.colour}`}), `${task.label} `,
        make("span", {class: "muted"}, `${Format.latency(task.best_s)} a call${way}`)),
      make("div", {class: "programs"},
        make("div", {}, make("h3", {}, "Loops"), make("pre", {}, nest)),
        make("div", {}, make("h3", {}, "Steps"), make("pre", {}, steps), make("h3", {}, "Definition"), make("pre", {}, task.definition))));
  },
};
