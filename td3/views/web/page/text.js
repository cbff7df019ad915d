// A file of the project as it is, line by line: the algorithm's source, or the document of the fifteen steps.

import { element, get, parameter, ready, setText, showTop } from "/static/shared.js";

/** The step a line begins, if any: `# 9 · …` in the code, `## 9 · …` in the document. */
function stepOf(line) {
  return /^\s*##? (\d+) · /.exec(line)?.[1] ?? null;
}

function row(line) {
  const step = stepOf(line);
  return element("li", { id: step && `step-${step}`, class: step && "step" }, line);
}

function showWanted() {
  document.querySelector("#lines .wanted")?.classList.remove("wanted");
  const wanted = document.getElementById(location.hash.slice(1));
  wanted?.classList.add("wanted");
  wanted?.scrollIntoView({ block: "center" });
}

async function show() {
  const found = await get("/api/text", { of: parameter("of") });
  document.title = `${found.path} · td3`;
  setText(document.getElementById("path"), found.path);
  document.getElementById("lines").replaceChildren(...found.lines.map(row));
  showWanted();
}

showTop("text");
document.getElementById("connection").remove(); // nothing changes here
addEventListener("hashchange", showWanted);
show()
  .catch((problem) => {
    setText(document.getElementById("problem"), problem.message);
    document.getElementById("problem").hidden = false;
  })
  .finally(ready);
