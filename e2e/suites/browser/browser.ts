import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext } from 'playwright-core'

/** Debian's; `.ci/run` installs it. */
const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
/** What only a browser that hangs takes, on a busy machine too. */
const SLOW_MS = 110_000
/** Nothing but the pages that the test opens: Chromium asks for much else by itself. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A browser with a profile of its own, and how to end it. */
export async function startBrowser(): Promise<{ readonly context: BrowserContext; close(): Promise<void> }> {
  const profile = await mkdtemp(join(tmpdir(), 'browser-'))
  const context = await chromium.launchPersistentContext(profile, { executablePath: EXECUTABLE, headless: true, args: QUIET, timeout: SLOW_MS })
  context.setDefaultTimeout(SLOW_MS)
  return {
    context,
    close: async () => {
      await context.close()
      await rm(profile, { recursive: true, force: true })
    },
  }
}
