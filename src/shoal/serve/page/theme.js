// Runs before the page is drawn, so that a chosen colour scheme does not flash.
"use strict";
try {
  const chosen = localStorage.getItem("shoal-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be switched off: the system's scheme applies.
}
