// Drives the status page in a real browser: `cargo xtask browser` runs it.
// Arguments: the address of a sample service, its token, a folder for pictures.
import assert from 'node:assert/strict';
import path from 'node:path';
import { chromium } from 'playwright-core';

const [url, token, folder] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

async function visit(name, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (message) => { if (message.type() === 'error') wrong.push(message.text()); });
  page.on('pageerror', (error) => wrong.push(String(error)));
  await page.goto(url);
  // By keyboard: the token field, the tenant, the button.
  await page.locator('#token').focus();
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await page.getByRole('rowheader', { name: 'web-1' }).waitFor();
  const top = page.getByRole('region', { name: 'Top keys' });
  await top.getByRole('button', { name: '/', exact: true }).waitFor();
  assert.equal(await page.locator('#streams tr').count(), 2);
  assert.equal(await page.getByRole('cell', { name: 'ok', exact: true }).count(), 2);
  assert.equal(await page.locator('#top tr').count(), 20);
  // A key is shown as text, whatever is in it.
  assert.equal(await page.locator('#top b').count(), 0);
  await top.getByRole('button', { name: '<b>not markup</b>' }).click();
  await page.getByRole('img', { name: /Counts over time/ }).waitFor();
  assert.match(await page.locator('#found').textContent(), /^<b>not markup<\/b>: \d+ /);
  // One stream alone, of a device that counts exactly.
  await page.locator('#stream').selectOption('web-1');
  await page.locator('#about', { hasText: '1 incarnation,' }).waitFor();
  assert.ok((await page.locator('#top tr').first().textContent()).includes('exact'));
  await page.locator('#key').fill('/login');
  await page.keyboard.press('Enter');
  await page.locator('#found', { hasText: '/login: ' }).waitFor();
  await page.getByText('The same as a table').click();
  assert.ok((await page.locator('#steps tr').count()) > 5);
  await page.getByText('The same as a table').click();
  // Nothing is wider than the window.
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wider, 0, `${name}: the page is ${wider} pixels too wide`);
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
  // The token stays over a reload, and goes when asked.
  await page.reload();
  await page.getByRole('rowheader', { name: 'web-1' }).waitFor();
  await page.getByRole('button', { name: 'Forget token' }).click();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('ucl-token')), null);
  // A wrong one is told.
  await page.locator('#token').fill('ucl_wrong');
  await page.keyboard.press('Enter');
  await page.getByText('The token is not known.').waitFor();
  assert.deepEqual(wrong.filter((text) => !text.includes('401')), [], `${name}: errors in the page`);
  await context.close();
}

try {
  await visit('light', { colorScheme: 'light', viewport: { width: 1200, height: 800 } });
  await visit('dark', { colorScheme: 'dark', viewport: { width: 1200, height: 800 } });
  await visit('phone', { colorScheme: 'light', viewport: { width: 375, height: 700 }, isMobile: true, hasTouch: true });
  console.log(`The page works in light, dark and on a phone: see ${folder}`);
} finally {
  await browser.close();
}
