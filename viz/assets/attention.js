"use strict";
(() => {
  const root = document.documentElement, $ = id => document.getElementById(id);
  const figures = [...document.querySelectorAll("figure")];
  const state = { row: -1, pinned: false };
  function show() {
    for (const figure of figures) {
      const seen = x => x.value === "" || x.value === figure.dataset[x.id];
      figure.hidden = !(seen($("variant")) && seen($("head")));
      const rows = [...figure.querySelectorAll("tbody tr")];
      figure.querySelector("table").classList.toggle("some", state.row >= 0);
      rows.forEach((row, i) => row.classList.toggle("on", i === state.row));
      const said = figure.querySelector("p");
      said.replaceChildren();
      const reading = figure.querySelectorAll("template")[state.row];
      if (reading) said.append(reading.content.cloneNode(true));
    }
  }
  const at = row => [...row.parentNode.children].indexOf(row);
  for (const row of document.querySelectorAll("tbody tr")) {
    const head = row.querySelector("th");
    head.tabIndex = 0;
    head.setAttribute("role", "button");
    row.onmouseenter = () => { if (!state.pinned) { state.row = at(row); show(); } };
    row.onmouseleave = () => { if (!state.pinned) { state.row = -1; show(); } };
    head.onfocus = () => { state.row = at(row); show(); };
    const pin = () => {
      state.pinned = !(state.pinned && state.row === at(row));
      state.row = at(row);
      document.querySelectorAll("tbody th").forEach(x => x.setAttribute("aria-pressed", state.pinned && at(x.parentNode) === state.row));
      show();
    };
    head.onclick = pin;
    head.onkeydown = event => {
      const to = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
      if (to) to.querySelector("th").focus();
      else if (event.key === "Enter" || event.key === " ") pin();
      else return;
      event.preventDefault();
    };
  }
  for (const id of ["variant", "head"]) $(id).onchange = show;
  $("language").onclick = () => {
    root.lang = root.lang === "zh" ? "en" : "zh";
    $("language").textContent = root.lang === "zh" ? "English" : "中文";
    for (const id of ["variant", "head"]) $(id).options[0].textContent = root.lang === "zh" ? "全部" : "all";
  };
  root.classList.add("js");
  show();
})();
