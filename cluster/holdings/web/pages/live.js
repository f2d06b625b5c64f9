// Loads the page again when the server says that there is a newer version: at most once a
// second, and only while the page is visible.
'use strict';
(() => {
  const sign = document.getElementById('live');
  let version = document.body.dataset.version, wanted = version, waiting = false;
  const refresh = async () => {
    if (waiting || document.hidden || wanted === version) return;
    waiting = true;
    try {
      const answer = await fetch(location.href, {cache: 'no-store'});
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const open = [...document.querySelectorAll('details')].map((d) => d.open);
      const field = document.activeElement, name = field && field.closest('form') && field.name;
      const typed = Object.fromEntries([...document.querySelectorAll('form [name]')].map((f) => [f.name, f.value]));
      const next = page.querySelector('main');
      document.querySelector('main').replaceWith(next);
      next.querySelectorAll('details').forEach((d, i) => { d.open = open[i] || false; });
      next.querySelectorAll('form [name]').forEach((f) => {
        if (f.name in typed) f.value = typed[f.name];
        if (f.name === name) f.focus();
      });
      document.title = page.title;
      version = document.body.dataset.version = page.body.dataset.version;
    } catch (e) { /* the stream reports when the server is back */ }
    setTimeout(() => { waiting = false; refresh(); }, 1000);
  };
  const stream = new EventSource('/events?after=' + encodeURIComponent(version));
  stream.addEventListener('change', (event) => { wanted = event.data; refresh(); });
  stream.onopen = () => { sign.textContent = 'live'; };
  stream.onerror = () => { sign.textContent = 'not connected'; };
  document.addEventListener('visibilitychange', refresh);
})();
