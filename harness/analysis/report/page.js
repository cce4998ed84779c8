// Puts live charts in the place of the drawn ones. Expressions are interpreted, so that the page's security
// policy need not allow code from text.
const specs = JSON.parse(document.getElementById("charts").textContent);
specs.forEach((spec, number) => {
  const live = document.createElement("div");
  vegaEmbed(live, spec, { actions: false, ast: true, renderer: "svg", logLevel: 1 }).then(() =>
    document.querySelector(`#figure-${number + 1} .wide`).replaceChildren(live),
  );
});
