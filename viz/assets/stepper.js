"use strict";
(() => {
  const $ = id => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const { steps, tables, nodes, levels, words } = data;
  const root = document.documentElement;
  const formulas = [...$("formulas").content.children];
  const lists = [...$("steps").children];
  const svgs = [...document.querySelectorAll("#picture svg")];
  steps.forEach((step, i) => { step.say = [...lists[i].children].map(text => text.textContent); });
  const state = { at: 0, order: [], level: 0, lang: root.lang, notation: "matrix", timer: 0, revealed: new Set() };
  const word = key => words[state.lang][key];
  const both = pair => pair[state.lang === "zh" ? 1 : 0];
  const make = (tag, text, parent) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  // Which steps there are, and where we stand -------------------------------------------------------------
  const chosen = () => state.order[state.at];
  function filter() {
    const want = $("filter").value, was = chosen() ?? 0;
    state.order = steps.map((_, i) => i).filter(i => want === "both" || (steps[i].k === "forward") === (want === "forward"));
    if (!state.order.length) state.order = steps.map((_, i) => i);
    $("slider").max = state.order.length;
    let at = state.order.findIndex(i => i >= was);
    state.at = at < 0 ? state.order.length - 1 : at;
  }
  function go(at, moved = true) {
    state.at = Math.max(0, Math.min(state.order.length - 1, at));
    $("verdict").textContent = "";
    if (moved) try { history.replaceState(null, "", "#step=" + (chosen() + 1)); } catch (refused) { /* inside a notebook's frame */ }
    show();
  }
  function goTo(step, moved = true) {
    let at = state.order.indexOf(step);
    if (at < 0) { $("filter").value = "both"; filter(); at = state.order.indexOf(step); }
    go(at, moved);
  }
  function fromAddress() {
    const found = /[#&](?:step|s)=(\d+)/.exec(location.hash);
    if (found) goTo(Math.max(0, Math.min(steps.length, +found[1]) - 1), false);
    return Boolean(found);
  }

  // What is shown -----------------------------------------------------------------------------------------
  function show() {
    const step = steps[chosen()], asked = $("ask").checked && step.ask && !state.revealed.has(chosen());
    $("slider").value = state.at + 1;
    $("count").textContent = `${state.at + 1} / ${state.order.length}`;
    $("slider").setAttribute("aria-valuetext", `${word("slider")} ${state.at + 1}: ${both(step.say)}`);
    $("first").disabled = $("previous").disabled = state.at === 0;
    $("next").disabled = $("last").disabled = state.at === state.order.length - 1;
    const say = $("say");
    say.replaceChildren();
    make("b", word("phase " + step.k), say);
    say.append(asked ? question_of(step.ask) : both(step.say));
    say.classList.toggle("bad", Boolean(step.bad));
    question(step, asked);
    for (const id of ["formula", "tables", "worked"]) $(id).replaceChildren();
    if (asked && step.k === "forward") panel(step.p.slice(0, -1));
    else if (asked) panel(step.p.slice(0, 1));
    else { panel(step.p); formula(step.f); worked(step); }
    code(step);
    picture(step);
    lists.forEach((item, i) => i === chosen() ? item.setAttribute("aria-current", "step") : item.removeAttribute("aria-current"));
  }
  const question_of = ask => word("ask " + ask.q).replace("{n}", () => ask.at);
  function question(step, asked) {
    const place = $("question");
    place.hidden = !asked;
    place.replaceChildren();
    if (!asked) return;
    make("div", question_of(step.ask), place);
    const options = step.ask.o || ["positive", "negative", "zero"].map(word), answer = options[step.ask.a], number = chosen();
    const reveal = text => { state.revealed.add(number); show(); $("verdict").textContent = text; $("verdict").focus(); };
    options.forEach((option, i) => {
      make("button", option, place).onclick = () => reveal(i === step.ask.a ? word("right") : `${word("wrong")} ${answer}`);
    });
    make("button", word("reveal"), place).onclick = () => reveal(answer);
  }
  function panel(parts) {
    for (const [sign, key, name, number] of parts) {
      const pair = make("div", undefined, $("tables"));
      pair.className = "pair";
      if (sign) make("i", sign, pair);
      const scroll = make("div", undefined, pair);
      scroll.className = "scroll";
      scroll.append(table(tables[number], key, name));
    }
  }
  function table(array, key, name) {
    const made = document.createElement("table");
    made.dataset.key = key;
    made.dataset.name = name;
    const caption = make("caption", word(key) + " ", made);
    make("b", name, caption);
    caption.append(` (${array.s.join(", ")}${array.s.length === 1 ? "," : ""})`);
    if (!array.r) { make("td", word("empty"), make("tr", undefined, made)); return made; }
    const rows = array.r.map(row => row.split(" "));
    const finite = rows.flat().map(Number).filter(Number.isFinite).map(Math.abs);
    const largest = array.h ? 1 : Math.max(0, ...finite);
    if (array.s.length) {
      const head = make("tr", undefined, made);
      if (array.s.length > 1) make("th", "", head);
      rows[0].forEach((_, j) => { make("th", j, head).scope = "col"; });
    }
    rows.forEach((row, i) => {
      const line = make("tr", undefined, made);
      if (array.s.length > 1) make("th", array.i ? array.i[i] : i, line).scope = "row";
      row.forEach(text => {
        const cell = make("td", text, line), x = Number(text);
        if (text === "True" || text === "False") return;
        if (!Number.isFinite(x)) cell.className = "strange";
        else cell.className = (array.h ? "s" : "h") + Math.round(largest ? 8 * x / largest : 0);
      });
    });
    if (array.cut) {
      const foot = make("td", "… " + array.cut.map(([k, x]) => `${word(k)} ${x}`).join("  "), make("tr", undefined, made));
      foot.colSpan = rows[0].length + 1;
      foot.className = "cut";
    }
    return made;
  }
  function formula(numbers) {
    for (const number of numbers) {
      const found = formulas[number], line = make("div", undefined, $("formula"));
      if (found.tagName === "CODE") make("small", word("definition") + " ", line);
      const form = found.tagName === "CODE" ? found : state.notation === "index" ? found.lastElementChild : found.firstElementChild;
      line.append(form.cloneNode(true));
    }
  }
  function worked(step, entry) {
    const place = $("worked");
    place.replaceChildren();
    document.querySelectorAll(".used,.chosen").forEach(cell => cell.classList.remove("used", "chosen"));
    if (!step.w) return;
    const cells = key => [...document.querySelectorAll(`#tables table[data-key="${key}"] td`)];
    const up = cells("upstream"), down = cells("contribution"), at = entry ?? step.w.c;
    make("h2", word("entry"), place);
    const width = tables[step.p[step.p.length - 1][3]].s.at(-1) ?? 1, shape = tables[step.p[step.p.length - 1][3]];
    const label = i => shape.s.length === 0 ? "" : shape.s.length === 1 ? `[${i}]` : `[${shape.i ? shape.i[Math.floor(i / width)] : Math.floor(i / width)},${i % width}]`;
    const known = Object.keys(step.w.e).map(Number);
    if (known.length > 1) {
      const pick = make("select", undefined, place);
      pick.setAttribute("aria-label", word("entry"));
      known.forEach(i => { const option = make("option", label(i), pick); option.value = i; option.selected = i === at; });
      pick.onchange = () => { worked(step, +pick.value); $("worked").querySelector("select").focus(); };
      known.forEach(i => { if (down[i]) { down[i].dataset.e = i; down[i].onclick = () => worked(step, i); } });
    }
    const terms = step.w.e[at] ? step.w.e[at].split(" ").map(term => term.split("*")) : [];
    const signed = x => x.startsWith("-") ? `(−${x.slice(1)})` : x;
    terms.forEach(([out]) => up[out].classList.add("used"));
    if (down[at]) down[at].classList.add("chosen");
    const sum = terms.map(([out, slope]) => `${signed(up[out].textContent)}·${signed(slope)}`).join(" + ") || "0";
    make("p", `${step.p[step.p.length - 1][2]}${label(at)}:  ${sum} ${terms.length ? "≈" : "="} ${down[at].textContent.replace("-", "−")}`, place);
  }
  function code(step) {
    document.querySelectorAll("#code .lit").forEach(line => line.classList.remove("lit"));
    const place = nodes[step.n];
    const line = place && $(`c${place[0]}-${place[1]}`);
    if (!line) return;
    line.classList.add("lit");
    scrollInside($("code"), line);
  }

  // The picture -------------------------------------------------------------------------------------------
  const part = key => $(`L${state.level}-${key}`);
  function scrollInside(frame, inner) {
    const a = frame.getBoundingClientRect(), b = inner.getBoundingClientRect();
    if (b.left < a.left + 20 || b.right > a.right - 20) frame.scrollLeft += (b.left + b.right - a.left - a.right) / 2;
    if (b.top < a.top + 10 || b.bottom > a.bottom - 10) frame.scrollTop += (b.top + b.bottom - a.top - a.bottom) / 2;
  }
  function picture(step) {
    svgs.forEach((svg, i) => { svg.toggleAttribute("hidden", i !== state.level); svg.style.display = i === state.level ? "" : "none"; });
    if (!svgs.length) return;
    const level = levels[state.level], svg = svgs[state.level];
    document.querySelectorAll("#picture :is(.now,.gets,.lit,.back,.pending)").forEach(x => x.classList.remove("now", "gets", "lit", "back", "pending"));
    svg.querySelectorAll(".badge").forEach(x => x.remove());
    const done = new Set(), complete = new Set();
    for (let i = 0; i <= chosen(); i++) {
      const { k, n, t, no, of } = steps[i];
      if (k === "forward") done.add(level.box[n]);
      else if (k === "seed" || k === "sum") complete.add(level.box[n]);
      else if (k === "pull" && no === of) complete.add(level.box[t]);
    }
    svg.querySelectorAll(".node").forEach(box => box.classList.toggle("pending", !done.has(box.id.slice(3))));
    complete.forEach(key => badge(part(key)));
    const box = part(level.box[step.n]);
    if (box) { box.classList.add("now"); scrollInside($("picture"), box); }
    if (step.k === "pull") {
      const to = part(level.box[step.t]), edge = part(level.edge[`${step.n}-${step.slot}`]);
      if (to && to !== box) to.classList.add("gets");
      if (edge) edge.classList.add("lit", "back");
      if (to) scrollInside($("picture"), to);
    } else if (step.k === "forward") {
      for (const key of level.into[level.box[step.n]] || []) { const edge = part(key); if (edge) edge.classList.add("lit"); }
    }
  }
  function badge(box) {
    if (!box) return;
    const area = box.getBBox(), text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.setAttribute("x", area.x + area.width - 15);
    text.setAttribute("y", area.y + 15);
    text.setAttribute("class", "badge");
    text.textContent = "∇";
    box.append(text);
  }
  function clicked(key) {
    const mine = i => levels[state.level].box[steps[i].n] === key;
    const forward = steps.findIndex((s, i) => s.k === "forward" && mine(i));
    const complete = steps.findIndex((s, i) => (s.k === "seed" || s.k === "sum") && mine(i) ||
      s.k === "pull" && s.no === s.of && levels[state.level].box[s.t] === key);
    if (chosen() === forward && complete >= 0 || forward < 0) goTo(complete < 0 ? chosen() : complete);
    else goTo(forward);
  }
  document.querySelectorAll("#picture .node").forEach(box => {
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "button");
    box.setAttribute("aria-label", box.querySelector("title")?.textContent ?? "");
    box.onclick = () => clicked(box.id.slice(3));
    box.onkeydown = event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      clicked(box.id.slice(3));
    };
  });

  // The controls ------------------------------------------------------------------------------------------
  function speak() {
    root.lang = state.lang;
    document.querySelectorAll("[data-word]").forEach(x => { x.textContent = word(x.dataset.word).replace("{n}", x.dataset.n ?? ""); });
    document.querySelectorAll("[data-label]").forEach(x => { x.setAttribute("aria-label", word(x.dataset.label)); x.title = word(x.dataset.label); });
    playing();
    show();
  }
  function playing() {
    $("play").textContent = word(state.timer ? "pause" : "play");
  }
  function stop() { clearTimeout(state.timer); state.timer = 0; playing(); }
  function tick() {
    if (state.at === state.order.length - 1) return stop();
    go(state.at + 1);
    state.timer = setTimeout(tick, +$("speed").value);
  }
  $("play").onclick = () => {
    if (state.timer) return stop();
    if (state.at === state.order.length - 1) go(0);
    state.timer = setTimeout(tick, +$("speed").value);
    playing();
  };
  const moves = { first: () => 0, previous: () => state.at - 1, next: () => state.at + 1, last: () => state.order.length - 1 };
  for (const [id, to] of Object.entries(moves)) $(id).onclick = () => { stop(); go(to()); };
  $("slider").oninput = () => { stop(); go(+$("slider").value - 1); };
  $("filter").onchange = () => { filter(); go(state.at); };
  $("notation").onchange = () => { state.notation = $("notation").value; show(); };
  $("ask").onchange = () => { state.revealed.clear(); $("verdict").textContent = ""; show(); };
  $("language").onclick = () => { state.lang = state.lang === "zh" ? "en" : "zh"; speak(); };
  $("theme").onchange = () => { root.dataset.theme = $("theme").value; };
  $("scopes").onchange = () => { state.level = +$("scopes").value; show(); };
  $("fit").onchange = () => { $("picture").classList.toggle("fit", $("fit").checked); show(); };
  const keys = { ArrowRight: "next", ArrowLeft: "previous", Home: "first", End: "last" };
  document.addEventListener("keydown", event => {
    if (!keys[event.key] || event.altKey || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    stop();
    go(moves[keys[event.key]]());
  });
  lists.forEach((item, i) => { item.onclick = () => goTo(i); });
  window.addEventListener("hashchange", fromAddress);
  root.classList.add("js");
  const natural = svgs[0] ? svgs[0].viewBox.baseVal.width * 4 / 3 : 0;
  if (natural > 1.8 * $("picture").clientWidth) { $("fit").checked = false; $("picture").classList.remove("fit"); }
  filter();
  speak();
  if (!fromAddress()) go(0, false);
})();
