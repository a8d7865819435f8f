// The status page: asks the HTTP API and shows what it says. Everything that comes from outside is
// set as text, never as markup.
'use strict';
const $ = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat('en');
let timer = 0;
let turn = 0;
let shownKey = '';

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function svg(name, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function bytes(number) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let at = 0;
  while (number >= 1024 && at < units.length - 1) { number /= 1024; at += 1; }
  return `${at ? number.toFixed(1) : number} ${units[at]}`;
}

function span(ms) {
  if (ms === null) return 'never';
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
}

function several(number, one) {
  return `${numbers.format(number)} ${one}${number === 1 ? '' : 's'}`;
}

function within(row) {
  return row.lower === row.upper ? 'exact' : `${numbers.format(row.lower)} to ${numbers.format(row.upper)}`;
}

function say(text, bad) {
  $('status').textContent = text;
  $('status').className = bad ? 'bad' : '';
}

async function ask(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== '') query.append(name, value);
  const tenant = encodeURIComponent(sessionStorage.getItem('ucl-tenant'));
  const response = await fetch(`/v1/${tenant}/${path}?${query}`, {
    headers: { Authorization: `Bearer ${sessionStorage.getItem('ucl-token')}` },
    cache: 'no-store',
  });
  const answer = await response.json();
  if (response.ok) return answer;
  const error = new Error(answer.detail || response.statusText);
  error.status = response.status;
  throw error;
}

function selection() {
  return { stream: $('stream').value, last: $('range').value };
}

function showStreams(streams) {
  const rows = streams.map((stream) => {
    const row = element('tr');
    const name = element('th', stream.stream);
    name.scope = 'row';
    name.title = stream.incarnation;
    row.append(name, element('td', stream.health, stream.health));
    const missing = stream.unseen ? (stream.unseen.items === null ? 'unknown' : numbers.format(stream.unseen.items)) : '0';
    row.append(
      element('td', span(stream.lag_ms), 'number'),
      element('td', numbers.format(stream.items), 'number wide'),
      element('td', numbers.format(stream.keys), 'number wide'),
      element('td', bytes(stream.uplink_bytes), 'number'),
      element('td', bytes(stream.memory_bytes), 'number wide'),
      element('td', missing, 'number wide'),
    );
    return row;
  });
  if (!rows.length) {
    const cell = element('td', 'No stream yet: start `ucl agent`.');
    cell.colSpan = 8;
    rows.push(element('tr'));
    rows[0].append(cell);
  }
  $('streams').replaceChildren(...rows);
  const names = [...new Set(streams.map((stream) => stream.stream))];
  const chosen = $('stream').value;
  const options = ['', ...names].map((name) => {
    const option = element('option', name || 'all');
    option.value = name;
    option.selected = name === chosen;
    return option;
  });
  $('stream').replaceChildren(...options);
}

function showTop(answer) {
  const largest = Math.max(1, ...answer.keys.map((row) => row.estimate));
  const rows = answer.keys.map((key) => {
    const row = element('tr');
    const cell = element('th');
    cell.scope = 'row';
    const button = element('button', key.shown, 'link');
    button.type = 'button';
    button.addEventListener('click', () => { $('key').value = key.shown; look(key.shown); });
    cell.append(button);
    const meter = svg('svg', { class: 'meter', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    meter.append(svg('rect', { width: (100 * key.estimate) / largest, height: 8 }));
    const share = element('td', undefined, 'wide');
    share.append(meter);
    row.append(cell, element('td', numbers.format(key.estimate), 'number'), element('td', within(key), 'number'), share);
    return row;
  });
  $('top').replaceChildren(...rows);
  const range = answer.range;
  let about = `${several(answer.items, 'item')} of ${several(answer.incarnations, 'incarnation')}`;
  if (range) about += `, ${several(range.epochs, 'epoch')}`;
  if (range && range.covered_to_ms !== null) about += ` up to ${new Date(range.covered_to_ms).toLocaleTimeString()}`;
  if (range && !range.complete) about += '; older epochs of this range are no longer kept one by one';
  if (answer.unseen_items || answer.unseen_unknown) about += '; some items were never seen';
  $('about').textContent = `${about}.`;
}

function chart(steps) {
  const [width, height, left, bottom] = [Math.max(280, $('chart').clientWidth), 200, 56, 24];
  const most = Math.max(1, ...steps.map((step) => step.upper));
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img' });
  picture.setAttribute('aria-label', `Counts over time, at most ${numbers.format(most)} in a step. The table below has them.`);
  const y = (value) => 8 + (height - bottom - 8) * (1 - value / most);
  for (const share of [0, 0.5, 1]) {
    const at = y(most * share);
    picture.append(svg('line', { class: 'axis', x1: left, x2: width, y1: at, y2: at }));
    const text = svg('text', { x: left - 6, y: at + 4, 'text-anchor': 'end' });
    text.textContent = numbers.format(Math.round(most * share));
    picture.append(text);
  }
  const wide = (width - left) / steps.length;
  steps.forEach((step, at) => {
    const x = left + at * wide;
    const bar = svg('rect', { class: 'bars', x: x + wide * 0.1, width: wide * 0.8, y: y(step.estimate), height: y(0) - y(step.estimate) });
    const title = svg('title', {});
    title.textContent = `${new Date(step.to_ms).toLocaleString()}: ${numbers.format(step.estimate)} (${within(step)})`;
    bar.append(title);
    picture.append(bar);
    if (step.upper > step.lower) {
      const middle = x + wide / 2;
      picture.append(svg('line', { class: 'whisker', x1: middle, x2: middle, y1: y(step.upper), y2: y(step.lower) }));
    }
  });
  const ends = [[left, 'start', steps[0].from_ms], [width, 'end', steps[steps.length - 1].to_ms]];
  for (const [x, anchor, time] of ends) {
    const text = svg('text', { x, y: height - 6, 'text-anchor': anchor });
    text.textContent = new Date(time).toLocaleTimeString();
    picture.append(text);
  }
  return picture;
}

const STEPS = { '5m': '10s', '15m': '30s', '1h': '2m', '24h': '30m' };

// A sixtieth of the time from the first epoch that is kept to the last one.
function stepOf(answer) {
  const ends = answer.series.flatMap((series) => series.epochs.map((epoch) => epoch.ended_ms));
  const length = ends.length ? Math.max(...ends) - Math.min(...ends) : 0;
  return `${Math.max(1, Math.ceil(length / 60000))}s`;
}

async function look(key) {
  shownKey = key;
  try {
    const asked = { ...selection(), key };
    const estimate = await ask('estimate', asked);
    const step = STEPS[asked.last] || stepOf(await ask('series', asked));
    const series = await ask('series', { ...asked, step });
    if (shownKey !== key) return;
    const row = estimate.keys[0];
    const exact = row.lower === row.upper ? 'exact' : `the true count is in ${within(row)}`;
    $('found').textContent = `${row.shown}: ${numbers.format(row.estimate)} (${exact})`;
    const steps = series.steps;
    $('chart').replaceChildren(...(steps.length ? [chart(steps)] : []));
    $('figures').hidden = !steps.length;
    $('steps').replaceChildren(...steps.map((step) => {
      const line = element('tr');
      line.append(
        element('td', new Date(step.to_ms).toLocaleString()),
        element('td', numbers.format(step.estimate), 'number'),
        element('td', within(step), 'number'),
      );
      return line;
    }));
  } catch (error) {
    $('chart').replaceChildren();
    $('figures').hidden = true;
    $('found').textContent = error.message;
  }
}

async function refresh() {
  clearTimeout(timer);
  const mine = (turn += 1);
  try {
    const streams = await ask('streams', {});
    if (mine !== turn) return;
    showStreams(streams.streams);
    const top = await ask('top', { ...selection(), n: 20 });
    if (mine !== turn) return;
    showTop(top);
    if (shownKey) await look(shownKey);
    const late = streams.streams.filter((stream) => stream.health === 'late' || stream.health === 'ended').length;
    say(`${several(streams.streams.length, 'incarnation')}${late ? `, ${late} need attention` : ''}, as of ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    if (mine !== turn) return;
    if (error.status === 401) return leave('The token is not known.');
    say(error.message || 'The collector does not answer.', true);
  }
  if ($('live').checked && !document.hidden) timer = setTimeout(refresh, 10000);
}

function enter() {
  const has = sessionStorage.getItem('ucl-token') !== null;
  $('enter').hidden = has;
  $('board').hidden = !has;
  $('leave').hidden = !has;
  if (has) refresh();
}

function leave(why) {
  clearTimeout(timer);
  turn += 1;
  shownKey = '';
  sessionStorage.removeItem('ucl-token');
  enter();
  say(why, why !== 'Enter a token to begin.');
  $('token').focus();
}

$('enter').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('ucl-token', $('token').value.trim());
  sessionStorage.setItem('ucl-tenant', $('tenant').value.trim());
  $('token').value = '';
  enter();
});
$('leave').addEventListener('click', () => leave('Enter a token to begin.'));
$('controls').addEventListener('submit', (event) => { event.preventDefault(); refresh(); });
for (const id of ['range', 'stream', 'live']) $(id).addEventListener('change', refresh);
$('search').addEventListener('submit', (event) => { event.preventDefault(); look($('key').value); });
document.addEventListener('visibilitychange', () => { if (!document.hidden && !$('board').hidden) refresh(); });
enter();
