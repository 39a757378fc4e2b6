(() => {
  "use strict";
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("figures");
  const palettes = read("palettes");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const config = { displayModeBar: false, responsive: true, scrollZoom: false };
  const printWidth = 660;
  const drawn = new Set();
  let printing = false;

  // A string such as "@ink" is the role of a colour; everything else is passed on as it is.
  const dress = (value, colours) => {
    if (typeof value === "string") {
      return value.startsWith("@") && value.slice(1) in colours ? colours[value.slice(1)] : value;
    }
    if (Array.isArray(value)) return value.map((item) => dress(item, colours));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, dress(v, colours)]));
    }
    return value;
  };

  const draw = (element) => {
    const colours = palettes[dark.matches && !printing ? "dark" : "light"];
    const figure = dress(figures[element.dataset.chart], colours);
    if (printing) figure.layout.width = printWidth;
    drawn.add(element);
    return Plotly.react(element, figure.data, figure.layout, config).catch((error) => {
      console.error(error);
      element.textContent = "This chart could not be drawn; its figures are in the table.";
    });
  };

  const visible = () => [...document.querySelectorAll("[data-chart]")].filter(
    (element) => !element.closest("details:not([open])"));
  const drawAll = () => Promise.all(visible().map(draw)).then(() => {
    document.documentElement.dataset.charts = String(drawn.size);
  });

  dark.addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => { printing = true; drawAll(); });
  window.addEventListener("afterprint", () => { printing = false; drawAll(); });
  document.querySelectorAll("details").forEach((details) => details.addEventListener("toggle", () => {
    if (details.open) drawAll();
  }));
  drawAll();
})();
