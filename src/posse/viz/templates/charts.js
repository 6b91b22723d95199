// A chart is drawn when it comes near the window: a page of many opens at once.
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      near.unobserve(entry.target);
      draw[entry.target.dataset.chart]();
    }
  }
}, {rootMargin: "300px"});
for (const place of document.querySelectorAll("[data-chart]")) near.observe(place);

// One legend serves all panels of a chart: a name that is pressed shows its curves, and is pressed again to hide them.
for (const legend of document.querySelectorAll("[data-legend]")) {
  legend.addEventListener("click", (event) => {
    const name = event.target.closest("button");
    if (!name) return;
    const chart = document.querySelector(`[data-chart="${legend.dataset.legend}"]`);
    const places = [...chart.querySelectorAll("[data-root-id]")];
    const plots = places.map((place) => Bokeh.index.get_by_id(place.dataset.rootId)?.model).filter(Boolean);
    if (plots.length === 0) return; // not drawn yet
    const shown = name.getAttribute("aria-pressed") !== "true";
    name.setAttribute("aria-pressed", String(shown));
    for (const plot of plots) {
      for (const curve of plot.renderers) {
        if (curve.name === name.dataset.label) curve.visible = shown;
      }
    }
  });
}
