// Replaces the drawn charts with interactive charts. Vega interprets expressions, so the security policy of
// the page need not allow code that is created from text.
const specs = JSON.parse(document.getElementById("charts").textContent);
specs.forEach((spec, number) => {
  const live = document.createElement("div");
  vegaEmbed(live, spec, { actions: false, ast: true, renderer: "svg", logLevel: 1 }).then(() =>
    document.querySelector(`#figure-${number + 1} .wide`).replaceChildren(live),
  );
});
