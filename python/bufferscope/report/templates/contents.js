// The table of contents: becomes a menu where there is no room beside the page, and marks the section in view.
(() => {
  "use strict";

  // A link to something inside a fold opens the fold. Not all browsers do that by themselves.
  function unfold() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    let folded = false;
    for (let element = target; element; element = element.parentElement) {
      if (element.tagName === "DETAILS" && !element.open) { element.open = true; folded = true; }
    }
    if (folded) target.scrollIntoView();
  }
  window.addEventListener("hashchange", unfold);
  unfold();

  const contents = document.getElementById("contents");
  if (!contents) return;
  const button = contents.querySelector("button");
  const links = [...contents.querySelectorAll("a")];
  const sections = links.map((link) => document.getElementById(link.hash.slice(1)));

  function show(open) {
    contents.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
  }
  contents.classList.add("menu");
  button.hidden = false;
  button.addEventListener("click", () => show(!contents.classList.contains("open")));
  contents.addEventListener("click", (event) => { if (event.target.closest("a")) show(false); });
  document.addEventListener("click", (event) => { if (!contents.contains(event.target)) show(false); });
  contents.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    show(false);
    button.focus();
  });
  contents.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !contents.contains(event.relatedTarget)) show(false);
  });

  // The section in view is the last one that begins in the upper third of the window, or above it.
  let waiting = false;
  function mark() {
    waiting = false;
    const line = window.innerHeight / 3;
    const current = sections.findLastIndex((section) => section.getBoundingClientRect().top <= line);
    links.forEach((link, index) => {
      if (index === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  }
  function soon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(mark);
  }
  window.addEventListener("scroll", soon, { passive: true });
  window.addEventListener("resize", soon, { passive: true });
  mark();
})();
